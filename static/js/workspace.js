// Loaded by the workspace: panes, files, terminals and ports.
import { loaded } from "./loaded.js";
import "./chat_pane.js";
import "./files_pane.js";
import "./icons.js";
import "./panes.js";
import "./port_offers.js";
import "./ports.js";
import "./resume.js";
import "./terminals.js";
import "../files/files.js";
import "../editor/editor.js";
import "../editor/left_work.js";

loaded("workspace");
