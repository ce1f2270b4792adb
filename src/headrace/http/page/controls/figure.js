/** One figure beside what it was before. */

import { html } from "../html.js";
import { change, changeWords, NOTHING } from "../state/format.js";

/**
 * @param {{name: string, value: number | null | undefined, previous?: number | null, exact: string, shown: string, shownPrevious?: string,
 *   exactPrevious?: string, isBetterLow?: boolean, isChosen?: boolean, missing?: string, onChoose?: () => void}} props  `missing`: why nothing was before
 */
export function Figure({ name, value, previous, exact, shown, shownPrevious, exactPrevious, isBetterLow = false, isChosen = false, missing = "", onChoose }) {
  return html`<button type="button" class="figure" aria-pressed=${isChosen} onClick=${onChoose}>
    <span class="name">${name}</span>
    <span class="value" title=${exact}>${shown}</span>
    ${previous !== undefined && html`<${Change} value=${value} previous=${previous} shownPrevious=${shownPrevious} exactPrevious=${exactPrevious} isBetterLow=${isBetterLow} />`}
    ${missing && html`<span class="change faint" title=${missing}>${NOTHING}<span class="hidden"> ${missing}</span></span>`}
  </button>`;
}

/** @param {{value: number | null | undefined, previous: number | null, shownPrevious?: string, exactPrevious?: string, isBetterLow: boolean}} props */
function Change({ value, previous, shownPrevious, exactPrevious, isBetterLow }) {
  if (previous == null) return html`<span class="change faint">none before</span>`;
  const relative = change(value, previous);
  if (relative === null) return html`<span class="change faint" title=${exactPrevious}>was ${shownPrevious ?? NOTHING}</span>`;
  const side = Math.abs(relative) < 0.0005 ? "same" : relative > 0 !== isBetterLow ? "good" : "bad";
  const [sign, words] = side === "same" ? ["=", "unchanged"] : relative > 0 ? ["▲", "up"] : ["▼", "down"];
  return html`<span class=${`change ${side}`} title=${`Was ${exactPrevious}`}>
    <span aria-hidden="true">${sign}</span><span class="hidden">${words}</span>\u00a0${changeWords(side === "same" ? 0 : relative)}${" "}
    <span class="faint">from ${shownPrevious}</span></span>`;
}
