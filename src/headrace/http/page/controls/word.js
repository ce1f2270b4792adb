/** A word of a query: a button that opens what it can be changed to; refused words say why. */

import { html } from "../html.js";
import { OptionList } from "./option_list.js";
import { Popover } from "./popover.js";

/** @typedef {import("../state/refusals.js").Refusal} Refusal */

/**
 * @param {{label: any, title: string, refusal?: Refusal | null, onCorrect?: () => void, isAdd?: boolean, draft?: string, children: (close: () => void) => any}} props  `draft` is that of the panel
 */
export function Word({ label, title, refusal, onCorrect, isAdd = false, draft, children }) {
  return html`<span class=${`word-space ${refusal ? "refused" : ""}`}>
    <${Popover} title=${title} draft=${draft} className=${isAdd ? "word add" : "word"} label=${html`<bdi>${label}</bdi>`}>${children}<//>
    ${refusal && html`<span class="why" role="alert"><span>${reasonOf(refusal)}</span>
      ${refusal.suggestion && html`<button type="button" class="primary" onClick=${onCorrect}>Use <bdi>${refusal.suggestion}</bdi></button>`}</span>`}
  </span>`;
}

/** The message without the suggestion that its button repeats. @param {Refusal} refusal */
function reasonOf({ message, suggestion }) {
  return suggestion ? message.replace(/ \(did you mean "(?:[^"\\]|\\.)*"\?\)$/, "") : message;
}

/**
 * A word that is one of a list.
 * @param {{title: string, value?: string, label?: any, options: import("./option_list.js").Option[] | Record<string, string>, refusal?: Refusal | null, onCorrect?: () => void,
 *   isAdd?: boolean, isSearchable?: boolean, takesOther?: boolean | "last", onChoose: (value: string) => void, onRemove?: () => void}} props
 */
export function Choice({ title, value, label, options, refusal, onCorrect, isAdd, isSearchable, takesOther, onChoose, onRemove }) {
  const list = Array.isArray(options) ? options : Object.entries(options).map(([key, words]) => ({ value: key, label: words }));
  const shown = label ?? list.find((option) => option.value === value)?.label ?? String(value ?? ""); // of a link it may be anything
  return html`<${Word} title=${title} label=${shown} refusal=${refusal} onCorrect=${onCorrect} isAdd=${isAdd}>${(/** @type {() => void} */ close) => html`
    <${OptionList} label=${title} value=${value} options=${list} isSearchable=${isSearchable} takesOther=${takesOther} onChoose=${(/** @type {string} */ chosen) => (close(), onChoose(chosen))} />
    ${onRemove && html`<p class="actions"><button type="button" class="quiet danger" onClick=${() => (close(), onRemove())}>Remove</button></p>`}`}<//>`;
}
