// What only the workspace loads: the terminals and the port opener.
import "./ports.js";
import "./terminals.js";
