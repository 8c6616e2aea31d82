// What only the workspace loads: the panes, the terminals and the port opener.
import "./panes.js";
import "./ports.js";
import "./terminals.js";
