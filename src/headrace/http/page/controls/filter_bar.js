/** The filters of the page as words that can be taken away, and a way to add one. */

import { navigate, page } from "../app_state.js";
import { html } from "../html.js";
import { filterSentence, withFilter } from "../state/filters.js";
import { FilterEditor } from "./filter_editor.js";
import { Popover } from "./popover.js";

/** @typedef {import("../state/filters.js").FilterItem} FilterItem */

export const EVENT_COLUMNS = [
  "path", "referrer", "event_name", "country", "city", "browser_name", "os_name", "device_type", "language",
  "utm_source", "utm_medium", "utm_campaign", "anonymous_id", "session_id",
];
/** Those of the overview, which asks events and sessions. */
const COLUMNS = EVENT_COLUMNS.toSpliced(1, 0, "entry_path", "exit_path");

/** @param {{columns?: string[], table?: string}} props  `table` has the values to choose from */
export function FilterBar({ columns = COLUMNS, table }) {
  const { filters } = page.value;
  const without = (/** @type {number} */ index) => navigate({ filters: filters.filter((_, other) => other !== index) });
  const texts = columns.map((name) => ({ name, type: "text" }));
  return html`<div class="filters">
    ${filters.map((item, index) => html`<span class="chip" key=${JSON.stringify(item)}>
      <bdi title=${filterSentence(item)}>${filterSentence(item)}</bdi>
      <button type="button" aria-label=${`Remove filter: ${filterSentence(item)}`} onClick=${() => without(index)}>×</button></span>`)}
    <${Popover} title="Add a filter" draft="filter" shortcut="/" className="quiet" label=${html`<span aria-hidden="true">+</span> Filter <kbd>/</kbd>`}>
      ${(/** @type {() => void} */ close) => html`<${FilterEditor} columns=${texts} table=${table ?? "events"}
        onDone=${(/** @type {FilterItem} */ item) => (close(), navigate({ filters: withFilter(filters, item) }))} />`}
    <//>
    ${filters.length > 1 && html`<button type="button" class="quiet" onClick=${() => navigate({ filters: [] })}>Clear all</button>`}
  </div>`;
}
