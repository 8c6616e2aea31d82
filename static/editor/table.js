// Shows comma- or tab-separated values as a table. Only visible rows are drawn.
import Papa from "papaparse";
import { h } from "../js/dom.js";
import { lineOf } from "../files/names.js";
import { VirtualList } from "../files/virtual_list.js";
import { count } from "../files/format.js";

const mostColumns = 256;
const widest = 40; // characters
const sampled = 300; // rows to measure

// parse returns the rows of a text and the number of columns.
export function parse(text, tabs = false) {
  const { data } = Papa.parse(text, { delimiter: tabs ? "\t" : "", skipEmptyLines: "greedy" });
  const columns = Math.min(mostColumns, data.reduce((most, row) => Math.max(most, row.length), 0));
  return { rows: data, columns, cut: data.some((row) => row.length > columns) };
}

// widths returns the column widths in characters.
export function widths({ rows, columns }) {
  const out = new Array(columns).fill(4);
  for (const row of rows.slice(0, sampled)) {
    for (let i = 0; i < columns; i++) out[i] = Math.max(out[i], Math.min(widest, [...(row[i] ?? "")].length));
  }
  return out;
}

export function show(text, { tabs, title }) {
  const table = parse(text, tabs);
  const [head = [], ...body] = table.rows;
  const columns = `max-content ${widths(table).map((w) => `calc(${w}ch + 1.25rem)`).join(" ")}`;
  const number = (n) => h("span", { class: "line-no", role: "rowheader" }, n);
  const cells = (row, role) => Array.from({ length: table.columns }, (_, i) => h("span", { role, title: (row[i] ?? "").length > widest ? row[i] : null }, lineOf(row[i] ?? "")));
  const make = (row) => h("div", { class: "table-row", role: "row", "aria-rowindex": row.n + 1 }, number(row.n), cells(row.cells, "cell"));
  const canvas = h("div", { class: "table-rows", role: "rowgroup" });
  const header = h("div", { class: "table-row table-head", role: "row" }, number(""), cells(head, "columnheader"));
  const scroller = h("div", { class: "table-view", role: "table", "aria-label": title, "aria-rowcount": table.rows.length, tabindex: "0" }, header, canvas);
  scroller.style.setProperty("--columns", columns.replace("max-content", `${String(body.length).length + 3}ch`));
  const list = new VirtualList(scroller, canvas, { key: (row) => row.n, make, version: () => "" });
  const rows = body.map((cells, i) => ({ n: i + 1, cells }));
  const note = `${count(body.length, "row")}, ${count(table.columns, "column")}${table.cut ? ", more are hidden" : ""}`;
  return { element: scroller, note, shown: () => list.show(rows), end: () => list.end() };
}
