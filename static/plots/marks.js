// The signs in plots: what happened (marks), and that a sandbox did not run (bands). The server has the same words for its
// table (web/metrics_table.go). A new kind, such as a deployment, is a line here.
import { h, icon } from "../js/dom.js";
import { exact } from "./format.js";
import { bands, grouped, marks } from "./series.js";

export const signs = {
  start: { icon: "play", label: "Started", text: "Started" },
  wake: { icon: "sun", label: "Woken", text: "Woken by use" },
  restart: { icon: "restart", label: "Restarted", text: "Restarted" },
  oom: { icon: "warn", label: "Out of memory", text: "Out of memory: a process was killed" },
};

export const bandNames = { frozen: "Frozen", asleep: "Asleep", stopped: "Stopped", failed: "Failed" };

const apart = 18; // px between two signs
const farApart = 48; // the same where some stand for several, which takes a number
const roomForLabel = (text) => 28 + 7.5 * text.length; // px
const roomForCount = 36; // px that a number takes at the left of its sign

const mostNamed = 8; // marks in one title

const signOf = (mark) => signs[mark] ?? { icon: "note", label: mark, text: mark };

// titleOf says what happened, a line each.
function titleOf(all) {
  const lines = all.slice(0, mostNamed).map(({ mark, time }) => `${signOf(mark).text}, ${exact(time)}`);
  if (all.length > mostNamed) lines.push(`and ${all.length - mostNamed} more`);
  return lines.join("\n");
}

// placed returns the signs of a plot, each for one mark or several: see grouped.
export function placed(series, toX, width) {
  const list = marks(series);
  const close = grouped(list, toX, width, apart);
  return close.length < list.length ? grouped(list, toX, width, farApart) : close;
}

// showSigns puts signs above a plot, each with a label where there is room. A number stands at the left of its sign, where there
// is room for it also at both ends of the plot.
export function showSigns(row, list) {
  row.replaceChildren(
    ...list.map(({ x, mark, all, room }, i) => {
      const { icon: name, label } = signOf(mark);
      const free = list[i + 1]?.all.length > 1 ? room - roomForCount : room;
      const element = h("span", { class: `plot-mark mark-${mark}`, title: titleOf(all) }, icon(name), all.length === 1 && free >= roomForLabel(label) && h("span", {}, label), all.length > 1 && h("b", {}, `${all.length}×`));
      element.style.left = `${Math.round(x)}px`;
      return element;
    }),
  );
}

// hatches draws the pattern of a kind of band on a square, so that bands can be told apart without colour.
const hatches = {
  frozen(context, n) { // dots
    for (const [x, y] of [[n / 4, n / 4], [(3 * n) / 4, (3 * n) / 4]]) {
      context.beginPath();
      context.arc(x, y, n / 9, 0, 2 * Math.PI);
      context.fill();
    }
  },
  asleep(context, n) { // rising lines
    lines(context, [[-n, n, n, -n], [0, n, n, 0], [0, 2 * n, 2 * n, 0]]);
  },
  stopped(context, n) { // level lines
    lines(context, [[0, n / 2, n, n / 2]]);
  },
  failed(context, n) { // crossed lines
    lines(context, [[0, n, n, 0], [0, 0, n, n]]);
  },
};

function lines(context, list) {
  context.beginPath();
  for (const [x, y, toX, toY] of list) {
    context.moveTo(x, y);
    context.lineTo(toX, toY);
  }
  context.stroke();
}

function pattern(context, kind, colour, ratio) {
  const n = Math.round(8 * ratio);
  const tile = Object.assign(document.createElement("canvas"), { width: n, height: n });
  const ink = tile.getContext("2d");
  Object.assign(ink, { fillStyle: colour, strokeStyle: colour, lineWidth: ratio });
  hatches[kind](ink, n);
  return context.createPattern(tile, "repeat");
}

// boxes returns where the bands of a series are on a plot's canvas.
function boxes({ bbox, valToPos }, series, ratio) {
  return bands(series).map(({ kind, from, to }) => {
    const left = Math.max(valToPos(from, "x", true), bbox.left);
    const right = Math.min(valToPos(to, "x", true), bbox.left + bbox.width);
    return { kind, left, width: Math.max(right - left, ratio), top: bbox.top, height: bbox.height };
  });
}

// drawBands draws the bands of a series on a plot's canvas, below all else.
export function drawBands(u, series, look, ratio) {
  const { ctx } = u;
  for (const { kind, left, top, width, height } of boxes(u, series, ratio)) {
    ctx.save();
    ctx.fillStyle = look.band;
    ctx.fillRect(left, top, width, height);
    ctx.fillStyle = pattern(ctx, kind, look.hatch, ratio);
    ctx.fillRect(left, top, width, height);
    ctx.restore();
  }
}

// nameBands writes the names of bands where there is room, above all else, so that nothing runs through them.
export function nameBands(u, series, look, ratio) {
  for (const box of boxes(u, series, ratio)) {
    u.ctx.save();
    nameBand(u.ctx, bandNames[box.kind], box, look, ratio);
    u.ctx.restore();
  }
}

// nameBand writes a band's name in its middle, upright where it is too narrow, and not where there is no room at all.
function nameBand(ctx, name, { left, width, top, height }, look, ratio) {
  ctx.font = look.font(ratio);
  const long = ctx.measureText(name).width + 10 * ratio;
  const high = 18 * ratio;
  const upright = long > width;
  if (upright && (high > width || long > height)) return;
  ctx.translate(left + width / 2, top + height / 2);
  if (upright) ctx.rotate(-Math.PI / 2);
  ctx.fillStyle = look.surface;
  ctx.fillRect(-long / 2, -high / 2, long, high);
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillStyle = look.text;
  ctx.fillText(name, 0, 0);
}
