/** Chooses aggregate, column and name of one select. */

import { html } from "../html.js";
import { columnWords } from "../state/filters.js";
import { outputName } from "../state/query_body.js";
import { usePanelDraft } from "./draft.js";
import { OptionList } from "./option_list.js";

/** @typedef {import("../api/queries.js").Select} Select */
/** @typedef {import("../api/queries.js").Column} Column */

const AGGREGATE_WORDS = /** @type {Record<string, string>} */ ({
  count: "count",
  uniq: "unique",
  sum: "sum of",
  avg: "average",
  max: "highest",
  min: "lowest",
  p50: "median",
  p75: "75th percentile of",
  p90: "90th percentile of",
  p95: "95th percentile of",
  p99: "99th percentile of",
  earliest: "earliest",
  latest: "latest",
  good_share: "share of good",
  needs_improvement_share: "share of fair",
  poor_share: "share of poor",
});

/** @param {Select} select */
export function selectWords({ field, aggregate, alias }) {
  if (aggregate === "count") return alias && alias !== "count" ? alias : "rows";
  const plural = aggregate === "uniq" && !field.startsWith("properties.") ? "s" : "";
  return `${AGGREGATE_WORDS[aggregate] ?? aggregate} ${columnWords(field).toLowerCase()}${plural}`;
}

/** @param {{select?: Select, columns: Column[], aggregates: string[], onDone: (select: Select) => void, onRemove?: () => void}} props */
export function SelectEditor({ select, columns, aggregates, onDone, onRemove }) {
  const [aggregate, setAggregate] = usePanelDraft("aggregate", () => select?.aggregate ?? "count");
  const [alias, setAlias] = usePanelDraft("name", () => select?.alias ?? "");
  const isCount = aggregate === "count";
  const fitting = columns.filter((column) => isCount || fits(aggregate, column));
  const done = (/** @type {string} */ field) => {
    const { filters } = select ?? {};
    onDone({ field, aggregate, ...(alias.trim() && { alias: alias.trim() }), ...(filters && { filters }) });
  };
  return html`<div class="filter-panel">
    <p><select aria-label="Aggregate" value=${aggregate} onChange=${(/** @type {any} */ event) => setAggregate(event.target.value)}>
      ${aggregates.map((name) => html`<option key=${name} value=${name}>${AGGREGATE_WORDS[name] ?? name}</option>`)}</select>
      <input aria-label="Name of the figure" placeholder=${outputName({ field: select?.field ?? "*", aggregate })} value=${alias} onInput=${(/** @type {any} */ event) => setAlias(event.target.value)} /></p>
    ${isCount
      ? html`<button type="button" class="primary" onClick=${() => done("*")}>Count rows</button>`
      : html`<${OptionList} key=${aggregate} label="columns" isSearchable=${true} takesOther="last" value=${select?.field} onChoose=${done}
          options=${fitting.map(({ name, type }) => ({ value: name, label: columnWords(name), hint: type }))} />`}
    ${onRemove && html`<p class="actions"><button type="button" class="quiet danger" onClick=${onRemove}>Remove</button></p>`}
  </div>`;
}

/** @param {string} aggregate @param {Column} column */
function fits(aggregate, { type, aggregatable, name }) {
  if (aggregate === "uniq") return true;
  if (aggregate === "earliest" || aggregate === "latest") return type === "datetime";
  return aggregate.endsWith("_share") ? name === "metric_value" : aggregatable;
}
