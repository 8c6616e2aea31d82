// Draws a terminal with WebGL where that works.
const rounding = 2; // device pixels that a size may be off

// drawWithWebGL loads the drawing, unless gone() by then. It gives up, and calls gaveUp(), after a lost context (pages have a
// limited number), and when the canvas gets a wrong size: xterm.js takes it from the browser's ResizeObserver, which does not know of
// a scale that developer tools and browser automation emulate. xterm.js then draws as before.
export async function drawWithWebGL(screen, { gone, gaveUp }) {
  const { WebglAddon } = await import("@xterm/addon-webgl");
  if (gone()) return;
  const drawing = new WebglAddon();
  const giveUp = () => {
    sizes.disconnect();
    drawing.dispose();
    if (!gone()) gaveUp();
  };
  drawing.onContextLoss(giveUp);
  screen.loadAddon(drawing);
  const canvas = screen.element.querySelector("canvas:not(.xterm-link-layer)");
  const check = () => isWrong(canvas, devicePixelRatio) && giveUp();
  const sizes = new ResizeObserver(() => requestAnimationFrame(check)); // when xterm.js has set the size
  try {
    sizes.observe(canvas, { box: "device-pixel-content-box" });
  } catch {
    // Without this kind of size xterm.js does not use it either.
  }
}

// isWrong says whether a canvas that can be seen has other pixels than its place has on a display of that scale.
export function isWrong(canvas, scale) {
  const off = (pixels, css) => Math.abs(pixels - css * scale) > rounding;
  return canvas.clientWidth > 0 && (off(canvas.width, canvas.clientWidth) || off(canvas.height, canvas.clientHeight));
}
