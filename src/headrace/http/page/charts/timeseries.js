/** A chart over time by uPlot, which is loaded when the first one is needed. */

import { theme } from "../app_state.js";
import { html } from "../html.js";
import { splitOpen } from "../state/rows.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";

/** @typedef {import("../vendor/uplot.js").default} Plot */
/** @typedef {{color: (name: string) => string, font: string, fontPx: number}} Look  `color` reads a custom property */
/** @typedef {{label: string, values: (number | null)[], isPrevious?: boolean, isOpen?: boolean, color?: string}} Series  `isOpen`: the end of the line before, which goes on */

const PALETTE = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6", "--series-7", "--series-8"];
const DAY_S = 86_400;
/** The size of text in a browser that has its default, for which the distances below are made. */
const REM_PX = 14;
/** Between the cursor and its tip. */
const TIP_PX = 14;
/** Distances of ticks where a bucket has a day or more: uPlot would choose hours. */
const DAY_STEPS = [1, 2, 3, 7, 14, 28, 31, 61, 92, 183, 365, 730].map((days) => days * DAY_S);
/** Distances of ticks of counts: between one and two visitors there is none. */
const WHOLE_STEPS = Array.from({ length: 40 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * @param {{times: number[], series: Series[], label: string, names: (index: number) => string,
 *   format: (value: number | null) => string, axisFormat?: (value: number) => string, height?: number, isArea?: boolean, max?: number, onDraw?: (plot: any, look: Look) => void, open?: number}} props
 *   `times` are epoch seconds, read as UTC; `open` is the index of the bucket that goes on, -1 for none.
 */
export function TimeSeries({ times, series: lines, open = -1, label, names, format, axisFormat, height: designed = 260, isArea = true, max, onDraw }) {
  const host = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [pointed, setPointed] = useState(/** @type {{index: number, left: number, width: number} | null} */ (null));
  const [look, setLook] = useState(currentLook);
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    const onChange = () => setLook(currentLook());
    dark.addEventListener("change", onChange);
    addEventListener("dppxchange", onChange); // uPlot's, when the window is on another screen or zoomed
    return () => {
      dark.removeEventListener("change", onChange);
      removeEventListener("dppxchange", onChange);
    };
  }, []);
  const height = designed * textScale();
  const series = lines.flatMap((line) => (line.isPrevious ? [line] : withOpenEnd(line, open)));
  const content = JSON.stringify([times, series]);
  useEffect(() => {
    /** @type {Plot | undefined} */
    let plot;
    let isGone = false;
    const observer = new ResizeObserver(() => {
      if (host.current && plot) plot.setSize({ width: host.current.clientWidth, height });
    });
    import("../vendor/uplot.js").then(({ default: UPlot }) => {
      const root = host.current;
      if (isGone || !root) return;
      plot = new UPlot(
        optionsOf({ UPlot, times, series, axisFormat: axisFormat ?? format, height, width: root.clientWidth, isArea, max, onDraw, onMove: setPointed }),
        /** @type {any} */ ([times, ...series.map(({ values }) => values)]),
        root,
      );
      observer.observe(root);
    }, () => setMissing(true));
    return () => {
      isGone = true;
      observer.disconnect();
      plot?.destroy();
      setPointed(null);
    };
  }, [content, theme.value, look, height]);
  if (isMissing) return html`<${NoChart} />`;
  const colors = seriesColors(series);
  const tip = pointed && pointed.index < times.length ? pointed : null; // the chart of more buckets is still drawn
  return html`<figure class="chart" aria-label=${label}>
    <div ref=${host} style=${{ height: `${height}px` }} aria-hidden="true"></div>
    ${tip && html`<div class="tip" style=${besideCursor(tip)}>
      <b>${names(tip.index)}</b>
      ${series.map(({ label: name, values, isOpen, isPrevious }, index) => isHidden(series, index, tip.index, isOpen) ? null : html`<div key=${name} class=${isPrevious ? "before" : ""}>
        <i style=${{ background: `var(${colors[index]})` }}></i><bdi>${name}</bdi><span>${format(values[tip.index] ?? null)}</span></div>`)}
    </div>`}
  </figure>`;
}

/** What stands for charts where the service did not send what draws them. A browser may keep that, so the page is loaded again. */
function NoChart() {
  return html`<div class="chart-space" role="status"><p>The service did not send what draws charts. It may be restarting, or have been updated.</p>
    <p class="actions"><button type="button" onClick=${() => location.reload()}>Load the page again</button></p></div>`;
}

/** Where a tip has more room, and how wide it may be there. @param {{left: number, width: number}} tip */
function besideCursor({ left, width }) {
  const [side, offset] = left > width / 2 ? ["right", width - left] : ["left", left];
  return { [side]: `${offset + TIP_PX}px`, maxWidth: `min(20rem, ${width - offset - TIP_PX}px)` };
}

/** How much larger text is than in a browser that has its default. */
function textScale() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / REM_PX;
}

/** What a chart is drawn for: colours, and pixels of the canvas in one of the window. */
function currentLook() {
  return `${dark.matches} ${devicePixelRatio}`;
}

/** A line, and its end that goes on where there is one. @param {Series} line @param {number} open @returns {Series[]} */
function withOpenEnd(line, open) {
  const { whole, open: end } = splitOpen(line.values, open);
  return [{ ...line, values: whole }, ...(end.length ? [{ ...line, label: `${line.label} so far`, values: end, isOpen: true }] : [])];
}

/** Of a line and its open end, the one without a value is left out. @param {Series[]} series @param {number} index @param {number} at @param {boolean | undefined} isOpen */
function isHidden(series, index, at, isOpen) {
  const value = series[index]?.values[at];
  if (isOpen) return value == null || series[index - 1]?.values[at] != null;
  return value == null && series[index + 1]?.isOpen === true && series[index + 1]?.values[at] != null;
}

/** @param {any} wanted @returns {any} */
function optionsOf({ UPlot, times, series, axisFormat, height, width, isArea, max, onDraw, onMove }) {
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

/** Lengths of dashes and gaps in pixels of the canvas: on a sharp screen they would be too short to see. @param {...number} lengths */
export function dashes(...lengths) {
  return lengths.map((length) => length * devicePixelRatio);
}

/** A custom property for each series; a series of before takes none of the palette. @param {Series[]} series */
function seriesColors(series) {
  let next = 0;
  const taken = () => PALETTE[next++ % PALETTE.length];
  return series.map(({ isPrevious, isOpen, color }) => (isPrevious ? "--previous" : (color ?? (isOpen ? PALETTE[(next + PALETTE.length - 1) % PALETTE.length] : taken()))));
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
