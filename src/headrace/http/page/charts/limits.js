/** Lines across a chart where values become good or poor, each with its name. */

import { dashes } from "./timeseries.js";

/** @typedef {{value: number, label: string, color: string}} Limit  `color` is a custom property */
/** @typedef {{left: number, right: number, top: number, bottom: number}} Box  in pixels of the canvas */

/** Between a name and its line, and around it. */
const GAP_PX = 2;
const EDGE_PX = 4;

/** Draw limits over a chart, where their values are in sight. @param {Limit[]} limits */
export function limitsOver(limits) {
  return (/** @type {any} */ plot, /** @type {import("./timeseries.js").Look} */ look) => {
    /** @type {Box[]} */
    const taken = [];
    limits.forEach((limit) => drawLimit(plot, limit, look, taken));
  };
}

/** @param {any} plot @param {Limit} limit @param {import("./timeseries.js").Look} look @param {Box[]} taken  by names, of which this is one then */
function drawLimit(plot, { value, label, color }, look, taken) {
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
  const box = freeBox(plot, { y, width: ctx.measureText(label).width, height: look.fontPx * devicePixelRatio }, taken);
  const { right, bottom } = box;
  taken.push(box);
  ctx.setLineDash([]);
  ctx.lineWidth = EDGE_PX * devicePixelRatio;
  ctx.lineJoin = "round";
  ctx.strokeStyle = look.color("--card"); // keeps the name legible where nothing is free
  ctx.strokeText(label, right, bottom);
  ctx.fillText(label, right, bottom);
  ctx.restore();
}

/**
 * Where a name stands: as far to the right as the lines of the chart and other names leave room above its limit, or else below it.
 * @param {any} plot @param {{y: number, width: number, height: number}} name @param {Box[]} taken @returns {Box}
 */
function freeBox(plot, { y, width, height }, taken) {
  const { left: start, width: room } = plot.bbox;
  const [gap, edge] = [GAP_PX * devicePixelRatio, EDGE_PX * devicePixelRatio];
  const last = start + room - edge;
  const boxes = [y - gap, y + gap + height].flatMap((bottom) =>
    Array.from({ length: Math.max(1, Math.floor((4 * (room - width - 2 * edge)) / width) + 1) }, (_, step) => {
      const right = last - (step * width) / 4;
      return { left: right - width, right, top: bottom - height, bottom };
    }),
  );
  const isFree = (/** @type {Box} */ { left, right, top, bottom }) => {
    const around = { left: left - edge, right: right + edge, top: top - edge, bottom: bottom + edge };
    return !isCrossed(plot, around) && !taken.some((other) => other.left < right && other.right > left && other.top < bottom && other.bottom > top);
  };
  return /** @type {Box} */ (boxes.find(isFree) ?? boxes[0]);
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
