// What only the workspace loads: the panes, the files' place, the terminals and the port opener.
import { arrived } from "./arrived.js";
import "./files_pane.js";
import "./icons.js";
import "./panes.js";
import "./port_offers.js";
import "./ports.js";
import "./terminals.js";
import "../files/files.js";
import "../editor/editor.js";

arrived("workspace");
