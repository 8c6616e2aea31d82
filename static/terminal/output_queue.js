// OutputQueue stands between the websocket and the screen: it hands output to the screen in pieces that leave the page
// responsive, never so much that xterm.js would discard it, and says how much has been drawn. No DOM in here.
const inFlightLimit = 256 * 1024; // bytes that the screen is working on
const pieceLimit = 64 * 1024;
const ackEvery = 128 * 1024;

export class OutputQueue {
  #queue = [];
  #inFlight = 0;
  #drawn = 0; // not acknowledged yet
  #generation = 0; // of the connection: what an earlier one sent is not acknowledged to the next

  // write(bytes, done) draws and calls done; acknowledge(n) tells the other side.
  constructor(write, acknowledge) {
    this.write = write;
    this.acknowledge = acknowledge;
  }

  push(bytes) {
    for (let at = 0; at < bytes.length; at += pieceLimit) this.#queue.push(bytes.subarray(at, at + pieceLimit));
    this.#move();
  }

  // restart forgets what waits: a new connection draws the whole screen anew.
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
