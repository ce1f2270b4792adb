/** The filters of the page as words that can be taken away, and a way to add one. */

import { navigate, page, website } from "../app_state.js";
import { values } from "../api/queries.js";
import { html } from "../html.js";
import { columnWords, filterSentence, OPERATOR_WORDS } from "../state/filters.js";
import { useState } from "../vendor/hooks.js";
import { useLoad } from "./load.js";
import { OptionList } from "./option_list.js";
import { Popover } from "./popover.js";

/** @typedef {import("../state/filters.js").FilterItem} FilterItem */

const COLUMNS = [
  "path", "entry_path", "exit_path", "referrer", "event_name", "country", "city", "browser_name", "os_name",
  "device_type", "language", "utm_source", "utm_medium", "utm_campaign", "anonymous_id", "session_id",
];
const OPERATORS = ["eq", "ne", "contains", "not_contains", "starts_with", "matches", "is_set", "is_not_set"];
const SESSION_COLUMNS = ["entry_path", "exit_path"];

/** @param {{columns?: string[], table?: string}} props */
export function FilterBar({ columns = COLUMNS, table }) {
  const { filters } = page.value;
  const without = (/** @type {number} */ index) => navigate({ filters: filters.filter((_, other) => other !== index) });
  return html`<div class="filters">
    ${filters.map((item, index) => html`<span class="chip" key=${JSON.stringify(item)}>
      <bdi title=${filterSentence(item)}>${filterSentence(item)}</bdi>
      <button type="button" aria-label=${`Remove filter: ${filterSentence(item)}`} onClick=${() => without(index)}>×</button></span>`)}
    <${Popover} title="Add a filter" shortcut="/" className="quiet" label=${html`<span aria-hidden="true">+</span> Filter <kbd>/</kbd>`}>
      ${(/** @type {() => void} */ close) => html`<${FilterPanel} columns=${columns} table=${table}
        onDone=${(/** @type {FilterItem} */ item) => (navigate({ filters: [...filters, item] }), close())} />`}
    <//>
    ${filters.length > 1 && html`<button type="button" class="quiet" onClick=${() => navigate({ filters: [] })}>Clear all</button>`}
  </div>`;
}

/** @param {{columns: string[], table?: string, onDone: (item: FilterItem) => void}} props */
function FilterPanel({ columns, table, onDone }) {
  const [field, setField] = useState("");
  const [operator, setOperator] = useState("eq");
  if (!field) {
    return html`<${OptionList} label="columns" isSearchable=${true} onChoose=${setField}
      options=${columns.map((value) => ({ value, label: columnWords(value), hint: value }))} />`;
  }
  const needsValue = !operator.startsWith("is_");
  return html`<div class="filter-panel">
    <p><button type="button" class="quiet" onClick=${() => setField("")}>‹ ${columnWords(field)}</button>
      <select aria-label="Operator" value=${operator} onChange=${(/** @type {any} */ event) => setOperator(event.target.value)}>
        ${OPERATORS.map((name) => html`<option key=${name} value=${name}>${OPERATOR_WORDS[name]}</option>`)}
      </select></p>
    ${needsValue
      ? html`<${ValueList} key=${field} field=${field} table=${table ?? tableOf(field)} onChoose=${(/** @type {string} */ value) => onDone({ field, operator, value })} />`
      : html`<button type="button" class="primary" onClick=${() => onDone({ field, operator })}>Add filter</button>`}
  </div>`;
}

/** The frequent values of a column, or any other. @param {{field: string, table: string, onChoose: (value: string) => void}} props */
export function ValueList({ field, table, onChoose }) {
  const id = website.value?.id ?? "";
  const { value, isLoading } = useLoad(id && `values ${id} ${table} ${field}`, (signal) => values(id, { table, field, limit: 200 }, signal));
  const options = (value ?? []).map(({ value: one, count }) => ({ value: String(one), hint: count.toLocaleString("en") }));
  return html`<${OptionList} label="values" isSearchable=${true} takesOther=${true} isLoading=${isLoading} options=${options} onChoose=${onChoose} />`;
}

/** @param {string} field */
function tableOf(field) {
  return SESSION_COLUMNS.includes(field) ? "sessions" : "events";
}
