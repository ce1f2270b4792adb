/** Lines across a chart where values become good or poor, each with its name. */

import { dashes } from "./timeseries.js";

/** @typedef {{value: number, label: string, color: string}} Limit  `color` is a custom property */
/** @typedef {{left: number, right: number, top: number, bottom: number}} Box  in pixels of the canvas */

/** Between a name and its line, and around it. */
const GAP_PX = 2;
const EDGE_PX = 4;

/** Draw limits over a chart, where their values are in sight. @param {Limit[]} limits */
export function limitsOver(limits) {
  return (/** @type {any} */ plot, /** @type {import("./timeseries.js").Look} */ look) => limits.forEach((limit) => drawLimit(plot, limit, look));
}

/** @param {any} plot @param {Limit} limit @param {import("./timeseries.js").Look} look */
function drawLimit(plot, { value, label, color }, look) {
  const { ctx, bbox } = plot;
  const y = Math.round(plot.valToPos(value, "y", true));
  if (y < bbox.top || y > bbox.top + bbox.height) return;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = look.color(color);
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dashes(3, 4));
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.font = look.font.replace(`${look.fontPx}px`, `${look.fontPx * devicePixelRatio}px`);
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  const { right, bottom } = freeBox(plot, { y, width: ctx.measureText(label).width, height: look.fontPx * devicePixelRatio });
  ctx.setLineDash([]);
  ctx.lineWidth = EDGE_PX * devicePixelRatio;
  ctx.lineJoin = "round";
  ctx.strokeStyle = look.color("--card"); // keeps the name legible where nothing is free
  ctx.strokeText(label, right, bottom);
  ctx.fillText(label, right, bottom);
  ctx.restore();
}

/** Where a name stands above its limit: as far to the right as the lines of the chart leave room. @param {any} plot @param {{y: number, width: number, height: number}} name @returns {Box} */
function freeBox(plot, { y, width, height }) {
  const { left: start, width: room } = plot.bbox;
  const edge = EDGE_PX * devicePixelRatio;
  const bottom = y - GAP_PX * devicePixelRatio;
  const at = (/** @type {number} */ right) => ({ left: right - width, right, top: bottom - height, bottom });
  const last = start + room - edge;
  for (let right = last; right - width >= start + edge; right -= width / 4) {
    const { left, top } = at(right);
    if (!isCrossed(plot, { left: left - edge, right: right + edge, top: top - edge, bottom: bottom + edge })) return at(right);
  }
  return at(last);
}

/** Whether a line of the chart is in a part of it. @param {any} plot @param {Box} box */
function isCrossed(plot, { left, right, top, bottom }) {
  const [times, ...lines] = plot.data;
  return lines.some((/** @type {(number | null)[]} */ values) => {
    const pointAt = (/** @type {number} */ index) => [plot.valToPos(times[index], "x", true), plot.valToPos(values[index], "y", true)];
    return values.some((value, index) => {
      if (value == null) return false;
      const [x, y] = pointAt(index);
      const [nextX, nextY] = values[index + 1] == null ? [x, y] : pointAt(index + 1);
      if (nextX < left || x > right) return false;
      const ends = [Math.max(left, x), Math.min(right, nextX)].map((one) => (nextX === x ? y : y + ((nextY - y) * (one - x)) / (nextX - x)));
      return Math.min(...ends) < bottom && Math.max(...ends) > top;
    });
  });
}
