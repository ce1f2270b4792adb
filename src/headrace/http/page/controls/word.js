/** A word of a query: a button that opens what it can be changed to; refused words say why. */

import { html } from "../html.js";
import { Popover } from "./popover.js";

/** @typedef {import("../state/refusals.js").Refusal} Refusal */

/**
 * @param {{label: any, title: string, refusal?: Refusal | null, onCorrect?: () => void, isAdd?: boolean, children: (close: () => void) => any}} props
 */
export function Word({ label, title, refusal, onCorrect, isAdd = false, children }) {
  return html`<span class=${`word-space ${refusal ? "refused" : ""}`}>
    <${Popover} title=${title} className=${isAdd ? "word add" : "word"} label=${html`<bdi>${label}</bdi>`}>${children}<//>
    ${refusal && html`<span class="why" role="alert"><span>${refusal.message.replace(/ \(did you mean ".*"\?\)$/, "")}</span>
      ${refusal.suggestion && html`<button type="button" class="primary" onClick=${onCorrect}>Use <bdi>${refusal.suggestion}</bdi></button>`}</span>`}
  </span>`;
}
