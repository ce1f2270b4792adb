/** A chart over time. What draws it is loaded when the first one is needed. */

import { theme } from "../app_state.js";
import { html } from "../html.js";
import { splitOpen } from "../state/rows.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";

/** @typedef {import("../vendor/uplot.js").default} Plot */
/** @typedef {{color: (name: string) => string, font: string, fontPx: number}} Look  `color` reads a custom property */
/** @typedef {{label: string, values: (number | null)[], isPrevious?: boolean, isOpen?: boolean, color?: string}} Series  `isOpen`: the end of the line before, which goes on */

const PALETTE = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6", "--series-7", "--series-8"];
/** The size of text in a browser that has its default, for which the distances below are made. */
const REM_PX = 14;
/** Between the cursor and its tip. */
const TIP_PX = 14;
const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * @param {{times: number[], series: Series[], label: string, names: (index: number) => string,
 *   format: (value: number | null) => string, axisFormat?: (value: number) => string, height?: number, isArea?: boolean, isTime?: boolean, max?: number, onDraw?: (plot: any, look: Look) => void, open?: number}} props
 *   `times` are epoch seconds, read as UTC; `isTime`: values are seconds; `open` is the index of the bucket that goes on, -1 for none.
 */
export function TimeSeries({ times, series: lines, open = -1, label, names, format, axisFormat, height: designed = 260, isArea = true, isTime = false, max, onDraw }) {
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
    Promise.all([import("../vendor/uplot.js"), import("./plot.js")]).then(([{ default: UPlot }, { optionsOf }]) => {
      const root = host.current;
      if (isGone || !root) return;
      plot = new UPlot(
        optionsOf({ UPlot, times, series, axisFormat: axisFormat ?? format, height, width: root.clientWidth, isArea, isTime, max, onDraw, onMove: setPointed }),
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
export function textScale() {
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

/** Lengths of dashes and gaps in pixels of the canvas: on a sharp screen they would be too short to see. @param {...number} lengths */
export function dashes(...lengths) {
  return lengths.map((length) => length * devicePixelRatio);
}

/** A custom property for each series; a series of before takes none of the palette. @param {Series[]} series */
export function seriesColors(series) {
  let next = 0;
  const taken = () => PALETTE[next++ % PALETTE.length];
  return series.map(({ isPrevious, isOpen, color }) => (isPrevious ? "--previous" : (color ?? (isOpen ? PALETTE[(next + PALETTE.length - 1) % PALETTE.length] : taken()))));
}
