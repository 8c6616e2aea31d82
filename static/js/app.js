// What every page loads. Pages work without it; it makes them live and quick.
import "./htmx.js";
import { arrived } from "./arrived.js";
import "./copy.js";
import "./follow.js";
import "./keys.js";
import "./live_parts.js";
import "./menus.js";
import "./once.js";
import "./request_errors.js";
import "./service_log.js";
import "./sheets.js";
import "./state_changes.js";
import "./theme.js";
import "./times.js";

arrived("app");
