/** Tabs above what one of them shows: arrow keys choose another one, Tab leads into what is shown. */

import { html } from "../html.js";

/** @param {{id: string, label: string, tabs: [string, string][], value: string, onChoose: (value: string) => void}} props  `id` is that of the panel, `tabs` are values with their words */
export function Tabs({ id, label, tabs, value, onChoose }) {
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const at = tabs.findIndex(([one]) => one === value);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    const list = event.currentTarget;
    if (to === undefined || !(list instanceof HTMLElement)) return;
    event.preventDefault();
    const chosen = (to + tabs.length) % tabs.length;
    onChoose(String(tabs[chosen]?.[0]));
    /** @type {HTMLElement} */ (list.children[chosen]).focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKeyDown}>${tabs.map(([one, words]) => html`<button key=${one} type="button" role="tab"
    id=${`${id}-${one}`} aria-controls=${id} aria-selected=${one === value} tabindex=${one === value ? 0 : -1} onClick=${() => onChoose(one)}>${words}</button>`)}</div>`;
}

/** What a tab shows. @param {{id: string, value: string, children: any}} props */
export function TabPanel({ id, value, children }) {
  return html`<div class="tab-panel" role="tabpanel" id=${id} aria-labelledby=${`${id}-${value}`}>${children}</div>`;
}
