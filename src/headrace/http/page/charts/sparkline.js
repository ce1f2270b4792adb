/** A line without axes, beside the number that it adds up to: screen readers pass it over. */

import { html } from "../html.js";

const WIDTH = 120;
const HEIGHT = 28;

/** @param {{values: (number | null)[]}} props */
export function Sparkline({ values }) {
  const known = values.map((value) => value ?? 0);
  const numbers = known.length === 1 ? [...known, ...known] : known; // a line has two ends
  const high = Math.max(1e-9, ...numbers);
  const step = WIDTH / Math.max(1, numbers.length - 1);
  const points = numbers.map((value, index) => `${(index * step).toFixed(1)},${(HEIGHT - 2 - (value / high) * (HEIGHT - 4)).toFixed(1)}`);
  return html`<svg class="sparkline" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
    <polygon points=${`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} /><polyline points=${points.join(" ")} /></svg>`;
}
