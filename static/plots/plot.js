// One plot: lines, limit, bands, marks, cursor and tooltip.
import uPlot from "uplot";
import { announce } from "../js/announce.js";
import { h } from "../js/dom.js";
import { axisTimes, exact } from "./format.js";
import { kinds } from "./kinds.js";
import { drawLimit } from "./limit.js";
import { fade } from "./look.js";
import { bandNames, drawBands, nameBands, placed, showSigns, signs } from "./marks.js";
import { followTouches } from "./pinch.js";
import { peak, present, stateAt, top } from "./series.js";

const axisWidth = 64; // px
const stateNames = { ...bandNames, creating: "Creating", starting: "Starting", running: "Running", stopping: "Stopping", sleeping: "Going to sleep" };

// Plot draws one kind of figures into a section of the page. Its owner has pointed(plot, time), zoom(stretch), preview(stretch),
// reset() and signal.
export class Plot {
  #owner;
  #kind;
  #area;
  #values = [];
  #tip = h("div", { class: "plot-tip", hidden: true });
  #row = h("div", { class: "plot-marks", "aria-hidden": "true" });
  #u = null;
  #series = null;
  #look = null;
  #active = false; // it has the pointer or the focus: only then it shows the tooltip

  constructor(section, owner) {
    this.#owner = owner;
    this.#kind = kinds[section.dataset.plot];
    this.#area = section.querySelector("[data-area]");
    this.#fillValues(section.querySelector("[data-values]"));
    this.#listen();
  }

  #fillValues(place) {
    for (const line of this.#kind.lines) {
      const value = h("b", {}, "–");
      this.#values.push(value);
      place.append(h("span", { class: "plot-value" }, h("i", { class: `plot-line ${line.colour}${line.dash ? " dashed" : ""}`, "aria-hidden": "true" }), `${line.label} `, value));
    }
    if (!this.#kind.limit) return;
    this.limitText = h("span", { class: "plot-value quiet" });
    place.append(this.limitText);
  }

  #listen() {
    const { signal } = this.#owner;
    const on = (kind, listener) => this.#area.addEventListener(kind, listener, { signal });
    const activate = (active) => () => {
      this.#active = active;
      if (!active) this.#tip.hidden = true;
    };
    on("pointerenter", activate(true));
    on("pointerleave", activate(false));
    on("blur", () => {
      activate(false)();
      this.#owner.pointed(this, null);
    });
    on("dblclick", () => this.#owner.reset());
    on("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resize()).observe(this.#area);
  }

  // draw shows a series in a look.
  draw(series, look) {
    const remade = look !== this.#look;
    this.#series = series;
    this.#look = look;
    if (remade) this.#destroy();
    if (!this.#area.clientWidth) return; // hidden
    if (this.#u) this.#u.setData(this.#data());
    else this.#make();
    this.#show(this.#u.cursor.idx);
  }

  #destroy() {
    this.#u?.destroy();
    this.#u = null;
  }

  #data() {
    return [this.#series.time, ...this.#kind.lines.map(({ name }) => this.#series.columns[name])];
  }

  #size() {
    return { width: this.#area.clientWidth, height: this.#area.clientHeight };
  }

  #resize() {
    if (!this.#series || !this.#area.clientWidth) return;
    if (this.#u) this.#u.setSize(this.#size());
    else this.draw(this.#series, this.#look);
  }

  #limit() {
    return this.#kind.limit?.(this.#series) || 0;
  }

  #make() {
    this.#u = new uPlot(this.#options(), this.#data(), this.#area);
    this.#u.over.append(this.#row, this.#tip);
    followTouches(this.#u.over, {
      signal: this.#owner.signal,
      view: () => ({ since: this.#series.since, until: this.#series.until }),
      preview: (stretch) => this.#owner.preview(stretch),
      done: (stretch) => this.#owner.zoom(stretch),
      point: (x) => {
        this.#active = true;
        this.#u.setCursor({ left: x, top: this.#u.over.clientHeight / 2 });
      },
    });
  }

  #options() {
    const look = this.#look;
    const kind = this.#kind;
    const axis = { stroke: look.text, font: look.font(), grid: { stroke: look.grid, width: 1 }, ticks: { show: false } };
    return {
      ...this.#size(),
      padding: [22, 20, 0, 0],
      legend: { show: false },
      cursor: {
        drag: { x: true, y: false, setScale: false, dist: 6 },
        y: false,
        bind: { dblclick: () => () => null },
        points: { size: 7, width: 2, fill: () => look.surface, stroke: (u, i) => look[kind.lines[i - 1].colour] },
      },
      scales: {
        x: { time: true, range: () => [this.#series.since, this.#series.until] },
        y: { range: () => [0, top(peak(this.#series, kind.lines.map(({ name }) => name)), this.#limit(), kind.least)] },
      },
      axes: [
        { ...axis, size: 28, gap: 6, space: 72, values: (u, times, i, space, apart) => axisTimes(times, apart) },
        { ...axis, size: axisWidth, gap: 6, space: 32, ...(kind.steps && { incrs: kind.steps }), values: (u, values) => values.map((v) => (v === 0 ? "0" : kind.format(v))) },
      ],
      series: [{}, ...kind.lines.map(({ colour, dash, fill }) => ({
        stroke: look[colour], width: 1.5, dash, fill: fill && fade(look[colour], 0.1),
        points: { show: true, size: 3, fill: look[colour], filter: (u, i) => lonely(u.data[i]) },
      }))],
      hooks: {
        drawClear: [(u) => drawBands(u, this.#series, look, uPlot.pxRatio)],
        draw: [(u) => this.#drawn(u)],
        setCursor: [(u) => this.#pointed(u)],
        setSelect: [(u) => this.#selected(u)],
      },
    };
  }

  // #drawn adds what stands above the lines: the limit, the marks, a line below each sign, and the names of bands.
  #drawn(u) {
    const ratio = uPlot.pxRatio;
    const { ctx, bbox } = u;
    const look = this.#look;
    ctx.save();
    ctx.lineWidth = ratio;
    ctx.strokeStyle = look.quiet;
    ctx.setLineDash([2 * ratio, 3 * ratio]);
    const list = placed(this.#series, (time) => u.valToPos(time, "x"), u.over.clientWidth);
    for (const { all } of list) stroke(ctx, [u.valToPos(all[0].time, "x", true), bbox.top], [0, bbox.height]);
    ctx.restore();
    const limit = this.#limit();
    const series = this.#series;
    if (limit && limit <= u.scales.y.max) drawLimit(u, limit, { series, names: this.#kind.lines.map(({ name }) => name), look, ratio });
    nameBands(u, series, look, ratio);
    showSigns(this.#row, list);
  }

  #selected(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.#owner.zoom({ since: u.posToVal(left, "x"), until: u.posToVal(left + width, "x") });
  }

  #pointed(u) {
    const { left, idx } = u.cursor;
    this.#show(left < 0 ? null : idx);
    this.#owner.pointed(this, left < 0 ? null : u.posToVal(left, "x"));
  }

  // point moves the cursor to a time, or away.
  point(time) {
    this.#u?.setCursor(time === null ? { left: -10, top: -10 } : { left: this.#u.valToPos(time, "x"), top: this.#u.over.clientHeight / 2 });
  }

  // #show says the figures of a step, or without one the present ones.
  #show(i) {
    const { format, unit, lines, limitText } = this.#kind;
    lines.forEach(({ name }, n) => {
      const value = this.#series.columns[name][i ?? present(this.#series)] ?? null;
      this.#values[n].textContent = value === null ? "–" : format(value) + (n === 0 ? unit : "");
    });
    if (this.limitText) this.limitText.textContent = this.#limit() ? `limit ${limitText(this.#limit())}` : "no limit";
    this.#showTip(i);
  }

  // text is a step in words, line by line.
  #text(i) {
    const { time, step, columns, changes } = this.#series;
    const list = [exact(time[i], step)];
    const state = stateNames[stateAt(changes, time[i] + step / 2)];
    if (state) list.push(state);
    for (const { name, label } of this.#kind.lines) {
      const value = columns[name][i];
      if (value !== null) list.push(`${label} ${this.#kind.format(value)}`);
    }
    if (columns[this.#kind.lines[0].name][i] === null) list.push("Not measured");
    for (const { time: at, mark } of changes) {
      if (mark && at >= time[i] && at < time[i] + step) list.push(signs[mark]?.text ?? mark);
    }
    return list;
  }

  #showTip(i) {
    this.#tip.hidden = !this.#active || i === null || i === undefined;
    if (this.#tip.hidden) return;
    const [when, ...rest] = this.#text(i);
    this.#tip.replaceChildren(h("strong", {}, when), ...rest.map((line) => h("span", {}, line)));
    const x = this.#u.valToPos(this.#series.time[i], "x");
    const width = this.#u.over.clientWidth;
    const wide = this.#tip.offsetWidth;
    const left = x + 12 + wide > width ? x - 12 - wide : x + 12;
    this.#tip.style.left = `${Math.max(0, Math.min(left, width - wide))}px`;
  }

  #key(event) {
    if (!this.#u || event.ctrlKey || event.metaKey || event.altKey) return;
    const { time } = this.#series;
    const first = Math.max(0, time.findIndex((t) => t >= this.#series.since));
    const last = time.length - 1;
    const now = this.#u.cursor.left >= 0 ? (this.#u.cursor.idx ?? last) : last + 1;
    const by = event.shiftKey ? 10 : 1;
    const to = { ArrowLeft: now - by, ArrowRight: now + by, Home: first, End: present(this.#series) }[event.key];
    if (to !== undefined) this.#go(Math.max(first, Math.min(to, last)));
    else if (event.key === "+" || event.key === "=") this.#owner.zoomBy(0.5, this.#around());
    else if (event.key === "-") this.#owner.zoomBy(2, this.#around());
    else if (event.key === "Escape" && this.#u.cursor.left >= 0) this.#owner.pointed(null, null);
    else return;
    event.preventDefault();
  }

  #around() {
    return this.#u.cursor.left >= 0 ? this.#u.posToVal(this.#u.cursor.left, "x") : undefined;
  }

  #go(i) {
    this.#active = true;
    this.point(this.#series.time[i]);
    announce(this.#text(i).join(", "));
  }
}

// lonely returns the figures without neighbours, which a line alone would not show.
function lonely(values) {
  return values.flatMap((v, i) => (v !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null ? [i] : []));
}

function stroke(context, [x, y], [dx, dy]) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + dx, y + dy);
  context.stroke();
}
