// OutputQueue feeds output to the screen in pieces that keep the page responsive, never more than xterm.js can hold, and
// acknowledges drawn output. No DOM in here.
const inFlightLimit = 256 * 1024; // bytes not drawn yet
const pieceLimit = 64 * 1024;
const ackEvery = 128 * 1024;

export class OutputQueue {
  #queue = [];
  #inFlight = 0;
  #drawn = 0; // not yet acknowledged
  #generation = 0; // of the connection; output of an earlier one must not be acknowledged to the next

  // write(bytes, done) draws and then calls done(); acknowledge(n) reports n drawn bytes.
  constructor(write, acknowledge) {
    this.write = write;
    this.acknowledge = acknowledge;
  }

  push(bytes) {
    for (let at = 0; at < bytes.length; at += pieceLimit) this.#queue.push(bytes.subarray(at, at + pieceLimit));
    this.#move();
  }

  // restart drops the queue: a new connection redraws the whole screen.
  restart() {
    this.#queue = [];
    this.#drawn = 0;
    this.#generation++;
  }

  get waiting() {
    return this.#inFlight + this.#queue.reduce((sum, piece) => sum + piece.length, 0);
  }

  #move() {
    while (this.#inFlight < inFlightLimit && this.#queue.length > 0) {
      const piece = this.#queue.shift();
      const generation = this.#generation;
      this.#inFlight += piece.length;
      this.write(piece, () => this.#done(piece.length, generation));
    }
  }

  #done(bytes, generation) {
    this.#inFlight -= bytes;
    if (generation === this.#generation) this.#drawn += bytes;
    this.#move();
    if (this.#drawn >= ackEvery || (this.#drawn > 0 && this.#inFlight === 0)) {
      this.acknowledge(this.#drawn);
      this.#drawn = 0;
    }
  }
}
