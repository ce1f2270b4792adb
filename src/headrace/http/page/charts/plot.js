/** How uPlot draws a chart over time: loaded with it. */

import { dashes, seriesColors, textScale } from "./timeseries.js";

/** @typedef {import("./timeseries.js").Series} Series */

const DAY_S = 86_400;
/** Distances of ticks where a bucket has a day or more: uPlot would choose hours. */
const DAY_STEPS = [1, 2, 3, 7, 14, 28, 31, 61, 92, 183, 365, 730].map((days) => days * DAY_S);
/** How close ticks of values may be to each other, and into how many parts they divide an axis at most. */
const TICK_PX = 36;
const MAX_PARTS = 6;
/** Distances of ticks: of numbers, of counts, which have none between one and two visitors, and of seconds. */
const STEPS = stepsOf(10, [1, 2, 2.5, 5], -9);
const WHOLE_STEPS = STEPS.filter(Number.isInteger);
const TIME_STEPS = stepsOf(60, [1, 2, 5, 10, 15, 30], 0);

/** @param {any} wanted @returns {any} */
export function optionsOf({ UPlot, times, series, axisFormat, height, width, isArea, isTime, max, onDraw, onMove }) {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const scale = textScale();
  const fontPx = Math.round(11 * scale); // uPlot takes no fraction
  const font = `${fontPx}px ${style.getPropertyValue("--font")}`;
  const axis = { stroke: color("--faint"), font, ticks: { show: false }, border: { show: false } };
  const colors = seriesColors(series);
  const isHourly = times.length > 1 && times[1] - times[0] < DAY_S;
  const below = (isHourly ? 44 : 30) * scale;
  let ticks = [0, 1];
  const range = (/** @type {any} */ _, /** @type {number | null} */ low, /** @type {number | null} */ high) => {
    ticks = ticksBetween(low ?? 0, max ?? high ?? 0, isTime ? TIME_STEPS : isWhole(series) && max === undefined ? WHOLE_STEPS : STEPS, Math.min(MAX_PARTS, (height - below) / TICK_PX / scale));
    return [ticks[0], Number(ticks.at(-1)) * 1.01]; // uPlot would cut off half of a line at the end
  };
  // The line below the mouse is at the bucket whose values the tip has.
  const toBucket = (/** @type {any} */ plot, /** @type {number} */ left, /** @type {number} */ top) => {
    const time = left < 0 ? undefined : times[plot.posToIdx(left)];
    return [time === undefined ? left : plot.valToPos(time, "x"), top];
  };
  return {
    width,
    height,
    padding: [12, 24, 0, 4],
    legend: { show: false },
    tzDate: (/** @type {number} */ time) => UPlot.tzDate(new Date(time * 1000), "Etc/UTC"),
    cursor: { y: false, move: toBucket, points: { size: 8, width: 2 }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range } },
    axes: [
      { ...axis, grid: { show: false }, size: below, gap: 9, space: 70 * scale, values: dateTicks(), ...(!isHourly && { incrs: DAY_STEPS }) },
      { ...axis, grid: { stroke: color("--line"), width: 1 }, size: 52 * scale, gap: 6, incrs: WHOLE_STEPS, splits: () => ticks, values: () => ticks.map((tick) => axisFormat(tick).replace(/\.0+(?!\d)/, "")) },
    ],
    series: [
      {},
      ...series.map((/** @type {Series} */ one, /** @type {number} */ index) => {
        const stroke = color(colors[index] ?? "");
        return {
          label: one.label,
          stroke,
          width: one.isPrevious ? 1.5 : 2,
          dash: one.isPrevious ? dashes(5, 5) : one.isOpen ? dashes(2, 4) : undefined,
          fill: isArea && !one.isPrevious && !one.isOpen && series.filter((/** @type {Series} */ other) => !other.isPrevious && !other.isOpen).length === 1 ? gradient(stroke) : undefined,
          points: { show: times.length < 3 || (one.isOpen === true && one.values.filter((value) => value !== null).length === 1) },
          spanGaps: false,
        };
      }),
    ],
    hooks: {
      draw: [(/** @type {any} */ plot) => onDraw?.(plot, { color, font, fontPx })],
      setCursor: [
        (/** @type {any} */ plot) => {
          const { idx, left } = plot.cursor;
          const offset = plot.over.offsetLeft;
          onMove(idx == null || left < 0 ? null : { index: idx, left: left + offset, width: plot.root.clientWidth });
        },
      ],
    },
  };
}

/** @param {Series[]} series */
function isWhole(series) {
  return series.every(({ values }) => values.every((value) => value === null || Number.isInteger(value)));
}

/** Fades out downwards. @param {string} stroke */
function gradient(stroke) {
  return (/** @type {any} */ plot) => {
    const { top, height } = plot.bbox;
    if (!Number.isFinite(top + height) || height <= 0) return "transparent";
    const fill = plot.ctx.createLinearGradient(0, top, 0, top + height);
    fill.addColorStop(0, `color-mix(in srgb, ${stroke} 26%, transparent)`);
    fill.addColorStop(1, `color-mix(in srgb, ${stroke} 2%, transparent)`);
    return fill;
  };
}

/** Distances of ticks: some digits in each place of numbers with a base. @param {number} base @param {number[]} digits @param {number} first */
function stepsOf(base, digits, first) {
  return Array.from({ length: 40 }, (_, place) => digits.map((digit) => digit * base ** (place + first))).flat();
}

/** Ticks around all values and 0, with at most so many distances between them. @param {number} low @param {number} high @param {number[]} steps @param {number} most */
function ticksBetween(low, high, steps, most) {
  const bottom = Math.min(0, low);
  const top = Math.max(0, high) || (bottom ? 0 : 1);
  const step = steps.find((one) => Math.ceil(top / one) - Math.floor(bottom / one) <= most) ?? top - bottom;
  const first = Math.floor(bottom / step);
  return Array.from({ length: Math.ceil(top / step) - first + 1 }, (_, index) => (first + index) * step);
}

/** Ticks of days and hours in 24 hours, as uPlot's table of formats. */
function dateTicks() {
  const [hour, day, month, year] = [3600, 86_400, 2_592_000, 31_536_000];
  return [
    [year, "{YYYY}", null, null, null, null, null, null, 1],
    [month, "{MMM}", " {YYYY}", null, null, null, null, null, 1],
    [day, "{D} {MMM}", null, null, null, null, null, null, 1],
    [hour, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
    [60, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  ];
}
