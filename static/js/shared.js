// What more than one bundle needs, in one file: without it each of these modules would be a file of its own, fetched by itself.
// static/bundle takes imports of these modules from here. Two of them must not export the same name (shared.test.js).
export * from "./announce.js";
export * from "./clipboard.js";
export * from "./dom.js";
export * from "./live.js";
export * from "./loaded.js";
export * from "./page_lifecycle.js";
export * from "./reconnect.js";
export * from "./tabs.js";
export * from "./toast.js";
export * from "../editor/links.js";
export * from "../files/api.js";
export * from "../files/dialog.js";
export * from "../files/format.js";
export * from "../files/names.js";
export * from "../files/paths.js";
export * from "../files/upload_request.js";
export * from "../files/virtual_list.js";
export * from "../terminal/sequences.js";
export * from "../terminal/theme.js";
