// What the mouse wheel does where tmux has the scrollback, which xterm.js lacks: it opens it, or moves in a program that has the
// whole screen, such as less. No DOM in here.
const fresh = 1000; // ms; how long an answer about the program counts, after the last turn

export class Wheel {
  #lines = 0; // turned and not used; negative is up
  #full = false; // a program has the whole screen
  #until = 0;
  #asking = false;

  // look(part) resolves to {full, text}; part is "unless-full" or "state", without the text. open(text, lines) shows the
  // scrollback, scrolled up by so many lines. arrows(lines) types that many arrow keys, up when negative.
  constructor({ look, open, arrows, now = () => performance.now() }) {
    Object.assign(this, { look, open, arrows, now });
  }

  // turn takes lines, which may be fractions, as the wheel is turned.
  async turn(lines) {
    this.#lines += lines;
    if (this.#asking) return;
    if (this.now() < this.#until) {
      if (this.#full) return this.#move();
      if (this.#lines > 0) { // nothing is below
        this.#lines = 0;
        return;
      }
    }
    this.#asking = true;
    try {
      const known = this.#full || this.#lines > 0 ? await this.look("state") : null; // which is short
      const { full, text } = this.#lines < 0 && !known?.full ? await this.look("unless-full") : known;
      if (full) this.#move();
      else if (this.#lines < 0 && text) this.open(text, Math.max(1, Math.round(-this.#lines)));
      this.#ready(full);
    } catch {
      this.#lines = 0; // the connection's state says why
    } finally {
      this.#asking = false;
    }
  }

  // forget has the next turn ask again: a key may have started a program, or ended it.
  forget() {
    this.#until = 0;
  }

  #move() {
    const whole = Math.trunc(this.#lines);
    if (whole) this.arrows(whole);
    this.#lines -= whole;
    this.#full = true;
    this.#until = this.now() + fresh;
  }

  #ready(full) {
    if (full) return;
    this.#lines = 0;
    this.#full = false;
    this.#until = this.now() + fresh;
  }
}

const notch = 50; // px that xterm.js scrolls for a notch of a mouse wheel, which is 120 of wheelDeltaY

// linesOf returns how many lines a wheel event turns, for cells of a height in px and a screen of rows: as many as xterm.js scrolls.
export function linesOf({ deltaY, deltaMode, wheelDeltaY }, height, rows) {
  if (wheelDeltaY) return ((-wheelDeltaY / 120) * notch) / Math.max(height, 1);
  return deltaMode === 1 ? deltaY : deltaMode === 2 ? deltaY * rows : deltaY / Math.max(height, 1);
}
