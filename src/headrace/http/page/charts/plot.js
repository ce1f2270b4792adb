/** How uPlot draws a chart over time: loaded with it. */

import { dashes, seriesColors, textScale } from "./timeseries.js";

/** @typedef {import("./timeseries.js").Series} Series */

const DAY_S = 86_400;
/** Distances of ticks where a bucket has a day or more: uPlot would choose hours. */
const DAY_STEPS = [1, 2, 3, 7, 14, 28, 31, 61, 92, 183, 365, 730].map((days) => days * DAY_S);
/** Distances of ticks of counts: between one and two visitors there is none. */
const WHOLE_STEPS = Array.from({ length: 40 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** @param {any} wanted @returns {any} */
export function optionsOf({ UPlot, times, series, axisFormat, height, width, isArea, max, onDraw, onMove }) {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const scale = textScale();
  const fontPx = Math.round(11 * scale); // uPlot takes no fraction
  const font = `${fontPx}px ${style.getPropertyValue("--font")}`;
  const axis = { stroke: color("--faint"), font, ticks: { show: false }, border: { show: false } };
  const colors = seriesColors(series);
  const isHourly = times.length > 1 && times[1] - times[0] < DAY_S;
  return {
    width,
    height,
    padding: [12, 24, 0, 4],
    legend: { show: false },
    tzDate: (/** @type {number} */ time) => UPlot.tzDate(new Date(time * 1000), "Etc/UTC"),
    cursor: { y: false, points: { size: 8, width: 2 }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(0, low ?? 0), max ?? roundedUp(high)] } },
    axes: [
      { ...axis, grid: { show: false }, size: (isHourly ? 42 : 28) * scale, gap: 6, space: 70 * scale, values: dateTicks(), ...(!isHourly && { incrs: DAY_STEPS }) },
      { ...axis, grid: { stroke: color("--line"), width: 1 }, size: 52 * scale, gap: 6, space: 44 * scale, ...(isWhole(series) && { incrs: WHOLE_STEPS }), values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map((tick) => axisFormat(tick)) },
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

/** @param {number | null} high */
function roundedUp(high) {
  return high == null || high <= 0 ? 1 : high * 1.08;
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
