// Keeps the newest lines that wait to be shown.
export const mostRows = 1000;

// Waiting holds rows, newest first. It keeps no more than a page shows.
export class Waiting {
  #rows = [];
  #one;
  #many;
  count = 0; // lines that came, also those that are not kept

  // one and many are what rows are called.
  constructor(one = "line", many = "lines") {
    this.#one = one;
    this.#many = many;
  }

  // add takes rows that are newer than all before.
  add(rows) {
    this.count += rows.filter((row) => row.dataset.id).length;
    this.#rows = [...rows, ...this.#rows].slice(0, mostRows);
  }

  take() {
    const rows = this.#rows;
    this.#rows = [];
    this.count = 0;
    return rows;
  }

  get text() {
    return this.count === 1 ? `1 new ${this.#one}` : `${this.count.toLocaleString("en")} new ${this.#many}`;
  }
}
