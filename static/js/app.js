// Loaded by every page. Pages work without it; it keeps them up to date and saves round trips.
import "./htmx.js";
import { loaded } from "./loaded.js";
import "./alert_news.js";
import "./chat_news.js";
import "./copy.js";
import "./field_faults.js";
import "./follow.js";
import "./keyboard.js";
import "./live_parts.js";
import "./menus.js";
import "./new_sandbox.js";
import "./own_zone.js";
import "./pace.js";
import "./palette_keys.js";
import "./qr.js";
import "./submit_once.js";
import "./request_errors.js";
import "./sheets.js";
import "./state_changes.js";
import "./theme.js";
import "./times.js";
import "./worker.js";

if (document.querySelector("sandbox-logs, #log-form")) import("./logs.js");
if (document.getElementById("many")) import("./list.js");
if (document.querySelector("template-editor")) import("../templates/edit.js");
if (document.querySelector("[data-archive-upload]")) import("./archive_upload.js");

// On a phone the links scroll sideways: the current one is in the middle, with its neighbours.
document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

loaded("app");
