// The limit in a plot: a line, and a label that keeps off the figures.
import { crossed } from "./series.js";

const gap = 3; // px between the line and its label
const inset = 2; // px around the label's text
const above = 4; // px that the label may stand out of the plot at its top

// drawLimit draws a limit on a plot's canvas. names are the columns that the plot shows.
export function drawLimit(u, limit, { series, names, look, ratio }) {
  const { ctx, bbox } = u;
  const y = u.valToPos(limit, "y", true);
  ctx.save();
  ctx.strokeStyle = look.limit;
  ctx.lineWidth = 1.5 * ratio;
  ctx.setLineDash([8 * ratio, 4 * ratio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.font = look.font(ratio);
  const size = { width: ctx.measureText("Limit").width + 2 * inset * ratio, height: (12 + inset) * ratio };
  const box = place(bbox, y, size, ratio, ({ left, top }) => {
    const time = (x) => u.posToVal(x, "x", true);
    const value = (x) => u.posToVal(x, "y", true);
    return !crossed(series, names, { from: time(left), to: time(left + size.width), low: value(top + size.height), high: value(top) });
  });
  ctx.fillStyle = look.surface;
  ctx.fillRect(box.left, box.top, size.width, size.height);
  ctx.fillStyle = look.limit;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillText("Limit", box.left + inset * ratio, box.top + size.height / 2);
  ctx.restore();
}

// place finds where a label of a size is free of figures: below the line or above it, as far to the right as can be. Where it is
// free nowhere, it stands at the right, where there is more room.
export function place(plot, y, size, ratio, free) {
  const tops = [y + gap * ratio, y - gap * ratio - size.height].filter((top) => top >= plot.top - above * ratio && top + size.height <= plot.top + plot.height);
  const right = plot.left + plot.width - size.width;
  for (let left = right; left >= plot.left && tops.length; left -= size.width / 2) {
    for (const top of tops) if (free({ left, top })) return { left, top };
  }
  return { left: right, top: tops.at(-1) ?? y + gap * ratio };
}
