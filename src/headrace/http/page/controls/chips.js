/** Values that were chosen, as words that can be taken away. */

import { html } from "../html.js";

/** @param {{values: import("./option_list.js").Option[], onRemove: (value: string) => void}} props */
export function Chips({ values, onRemove }) {
  return values.map(({ value, label = value }) => html`<span class="chip" key=${value}><bdi title=${label}>${label}</bdi>
    <button type="button" aria-label=${`Remove ${label}`} onClick=${() => onRemove(value)}>×</button></span>`);
}
