/** Chooses column, operator and value of one filter. */

import { page } from "../app_state.js";
import { values } from "../api/queries.js";
import { html } from "../html.js";
import { columnWords, OPERATOR_WORDS } from "../state/filters.js";
import { countryName, valueName } from "../state/format.js";
import { numberOf } from "../state/json.js";
import { Chips } from "./chips.js";
import { usePanelDraft } from "./draft.js";
import { useLoad } from "./load.js";
import { explain } from "./messages.js";
import { OptionList } from "./option_list.js";

/** @typedef {import("../state/filters.js").Filter} Filter */
/** @typedef {{name: string, type: string}} Column */

const NUMBER_OPERATORS = ["eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "is_set", "is_not_set"];
const TEXT_OPERATORS = [
  "eq", "ne", "in", "not_in", "contains", "not_contains", "starts_with", "not_starts_with", "ends_with",
  "not_ends_with", "matches", "not_matches", "is_set", "is_not_set",
];
const OPERATORS = /** @type {Record<string, string[]>} */ ({
  text: TEXT_OPERATORS,
  json: Object.keys(OPERATOR_WORDS),
  number: NUMBER_OPERATORS,
  datetime: NUMBER_OPERATORS,
  boolean: ["eq", "ne"],
});
/** What JSON has as a number: "007" is a text. */
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;

/**
 * @param {{table: string, columns: Column[], filter?: Filter, onDone: (filter: Filter) => void, onRemove?: () => void, onGroup?: () => void}} props
 */
export function FilterEditor({ table, columns, filter, onDone, onRemove, onGroup }) {
  const [field, setField] = usePanelDraft("column", () => filter?.field ?? "");
  const [operator, setOperator] = usePanelDraft("operator", () => filter?.operator ?? "eq");
  if (!field) {
    const options = columns.map(({ name, type }) => ({ value: name, label: columnWords(name), hint: type === "json" ? "any key" : name }));
    return html`<${OptionList} label="columns" isSearchable=${true} takesOther="last" options=${options} onChoose=${setField} />`;
  }
  const type = typeOf(columns, field);
  const operators = OPERATORS[type] ?? TEXT_OPERATORS;
  const done = (/** @type {any} */ value) => onDone(operator.startsWith("is_") ? { field, operator } : { field, operator, value });
  return html`<div class="filter-panel">
    <p><button type="button" class="quiet" title="Another column" onClick=${() => setField("")}>‹ <bdi>${columnWords(field)}</bdi></button>
      <select aria-label="Operator" value=${operator} onChange=${(/** @type {any} */ event) => setOperator(event.target.value)}>
        ${operators.map((name) => html`<option key=${name} value=${name}>${OPERATOR_WORDS[name]}</option>`)}
      </select></p>
    <${ValueEditor} key=${`${field} ${operator}`} table=${field === "entry_path" || field === "exit_path" ? "sessions" : table} field=${field} type=${type} operator=${operator} value=${filter?.field === field ? filter.value : undefined} onDone=${done} />
    ${(onRemove || onGroup) && html`<p class="actions">
      ${onGroup && html`<button type="button" class="quiet" onClick=${onGroup}>or …</button>`}
      ${onRemove && html`<button type="button" class="quiet danger" onClick=${onRemove}>Remove</button>`}</p>`}
  </div>`;
}

/** @param {{table: string, field: string, type: string, operator: string, value: any, onDone: (value: any) => void}} props */
function ValueEditor({ table, field, type, operator, value, onDone }) {
  const [text, setText] = usePanelDraft(`value of ${field} ${operator}`, () => (value == null ? "" : String([value].flat()[0])));
  if (operator.startsWith("is_")) return html`<button type="button" class="primary" onClick=${() => onDone(null)}>Apply</button>`;
  if (type === "boolean") {
    return html`<${OptionList} label="values" value=${String(value)} options=${[{ value: "true", label: "true" }, { value: "false", label: "false" }]}
      onChoose=${(/** @type {string} */ chosen) => onDone(chosen === "true")} />`;
  }
  if (operator === "in" || operator === "not_in") {
    return html`<${ValueSet} table=${table} field=${field} type=${type} value=${value} onDone=${onDone} />`;
  }
  if ((operator === "eq" || operator === "ne") && type !== "number" && type !== "datetime") {
    return html`<${ValueList} table=${table} field=${field} onChoose=${onDone} parse=${(/** @type {string} */ typed) => scalarOf(typed, type)} />`;
  }
  const parsed = scalarOf(text, NUMBER_OPERATORS.includes(operator) ? type : "text");
  const isReady = parsed !== "" || type === "text";
  return html`<form class="value-form" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), isReady && onDone(parsed))}>
    <input aria-label="Value" value=${text} placeholder=${type === "datetime" ? "2026-01-31 or 2026-01-31T12:00" : "Value"}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    <button type="submit" class="primary" disabled=${!isReady}>Apply</button></form>`;
}

/** The frequent values of a column, or any other. @param {{field: string, table: string, parse: (typed: string) => any, onChoose: (value: any) => void}} props */
function ValueList({ field, table, parse, onChoose }) {
  const { known, options, ...waiting } = useValues(table, field);
  return html`<${OptionList} label="values" isSearchable=${true} takesOther=${true} ...${waiting} options=${options}
    onChoose=${(/** @type {string} */ text) => onChoose(known.has(text) ? known.get(text)?.value : parse(text))} />`;
}

/** Several values: each is chosen by itself, so that one with a comma is one. @param {{field: string, table: string, type: string, value: any, onDone: (value: any) => void}} props */
function ValueSet({ field, table, type, value, onDone }) {
  const [chosen, setChosen] = usePanelDraft(`values of ${field}`, () => [value ?? []].flat());
  const { known, options, ...waiting } = useValues(table, type === "datetime" ? "" : field);
  const isNumeric = type === "number" || type === "datetime"; // without a comma, so several may be typed at once
  const change = (/** @type {any[]} */ changed) => setChosen([...new Set(changed)]);
  const parse = (/** @type {string} */ text) => (isNumeric ? text.split(",").map((one) => one.trim()).filter(Boolean) : [text]).map((one) => scalarOf(one, type));
  return html`<div class="value-form">
    ${chosen.length > 0 && html`<div class="chips"><${Chips} values=${chosen.map((one) => ({ value: JSON.stringify(one), label: valueName(field, one) }))}
      onRemove=${(/** @type {string} */ text) => change(chosen.filter((one) => JSON.stringify(one) !== text))} /></div>`}
    <${OptionList} key=${chosen.length} label="values" isSearchable=${true} takesOther=${true} ...${waiting} options=${options.filter((option) => !chosen.includes(known.get(option.value)?.value))}
      onChoose=${(/** @type {string} */ text) => change([...chosen, ...(known.has(text) ? [known.get(text)?.value] : parse(text))])} />
    <button type="button" class="primary" disabled=${chosen.length === 0} onClick=${() => onDone(chosen)}>Apply</button></div>`;
}

/** The frequent values of a column, by their text; none without a column. @param {string} table @param {string} field */
function useValues(table, field) {
  const id = page.value.website;
  const { value, isLoading, error } = useLoad(field && `values ${id} ${table} ${field}`, (signal) => values(id, { table, field, limit: 200 }, signal));
  const known = new Map((value ?? []).map((one) => [String(one.value), one]));
  const options = [...known].map(([text, { count }]) => ({ value: text, label: field === "country" ? countryName(text) : text, hint: count.toLocaleString("en") }));
  return { known, options, isLoading, problem: error == null ? "" : `No values to choose from: ${explain(error).title}` };
}

/** @param {string} text @param {string} type @returns {import("../state/filters.js").Scalar} */
function scalarOf(text, type) {
  const number = type === "number" || (type === "json" && JSON_NUMBER.test(text.trim())) ? numberOf(text) : undefined;
  if (number !== undefined) return number;
  return type === "json" && (text === "true" || text === "false") ? text === "true" : text;
}

/** @param {Column[]} columns @param {string} field */
function typeOf(columns, field) {
  return columns.find(({ name }) => name === field)?.type ?? (field.startsWith("properties.") ? "json" : "text");
}
