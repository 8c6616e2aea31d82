// An xterm.js screen, with what those of a terminal and of its scrollback have alike.
import { FitAddon } from "@xterm/addon-fit";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { Terminal } from "@xterm/xterm";
import { hidden } from "./links.js";
import { readTheme } from "./theme.js";

// newScreen returns {screen, fitting} in the colours and the font of root. options are xterm.js's.
export function newScreen(root, options) {
  const screen = new Terminal({
    ...readTheme(root),
    allowProposedApi: true, // for the Unicode addon
    linkHandler: hidden,
    minimumContrastRatio: 4.5,
    ...options,
  });
  const fitting = new FitAddon();
  screen.loadAddon(fitting);
  screen.loadAddon(new Unicode11Addon());
  screen.unicode.activeVersion = "11";
  return { screen, fitting };
}
