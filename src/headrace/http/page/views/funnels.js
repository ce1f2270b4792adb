/** Who took each step, in how much time. The steps are in the URL. */

import { amend, bounds, navigate, page, timezone } from "../app_state.js";
import { funnel } from "../api/queries.js";
import { EVENT_COLUMNS, FilterBar } from "../controls/filter_bar.js";
import { AddFilter, FilterWords } from "../controls/filter_words.js";
import { useLoad } from "../controls/load.js";
import { Empty, Failure, marked, Skeleton } from "../controls/messages.js";
import { RangePicker } from "../controls/range_picker.js";
import { Choice } from "../controls/word.js";
import { useSchema } from "../controls/schema.js";
import { html } from "../html.js";
import { columnWords, hasFilters } from "../state/filters.js";
import { duration, exactNumber, percent, shortNumber, valueName } from "../state/format.js";
import { parseJson } from "../state/json.js";
import { stepName } from "../state/analyses/funnel_steps.js";
import { withAt, withoutNulls } from "../state/query_body.js";
import { rowsByValue } from "../state/rows.js";
import { PAGE_VIEW } from "../state/standard_types.js";

/** @typedef {{name?: string, filters: import("../state/filters.js").FilterItem[]}} Step */
/** @typedef {{steps: Step[], window: number, by: string, groupBy?: string}} Funnel */
/** @typedef {Record<string, any>} Row */

const MAX_STEPS = 10;
const MAX_GROUPS = 30;
const WINDOWS = { 1800: "half an hour", 3600: "an hour", 86400: "a day", 604800: "7 days", 2592000: "30 days", 7776000: "90 days" };
const BY = { anonymous_id: "visitor", session_id: "session", profile_id: "profile" };
const GROUPS = ["country", "browser_name", "os_name", "device_type", "utm_source", "utm_campaign", "referrer", "path"];

/** @type {Funnel} */
const FIRST = {
  steps: [
    { name: "Page view", filters: [PAGE_VIEW] },
    { name: "Own event", filters: [{ field: "event_name", operator: "not_in", value: [...PAGE_VIEW.value, "page_exit"] }] },
  ],
  window: 86_400,
  by: "anonymous_id",
};

export function Funnels() {
  const wanted = funnelOf(page.value.query);
  const body = { ...wanted, steps: wanted.steps.map(({ filters = [], ...step }) => ({ ...step, filters: [...filters, ...page.value.filters] })), ...bounds.value, timezone: timezone.value };
  const id = page.value.website;
  const known = useSchema();
  const { value, error, isLoading, reload } = useLoad(`funnel ${id} ${JSON.stringify(body)}`, async (signal) => ({ wanted, rows: (await funnel(id, body, signal)).data }));
  const columns = known.value?.tables.find(({ name }) => name === "events")?.columns.filter(({ filterable }) => filterable) ?? [];
  const change = (/** @type {Funnel} */ changed) => navigate({ query: JSON.stringify(changed) });
  return html`
    <div class="toolbar"><${RangePicker} hasCompare=${false} hasGranularity=${false} /><${FilterBar} columns=${EVENT_COLUMNS} /></div>
    <section class="card query">
      <div class="sentence"><span>Follow each</span><${Choice} title="Follow" value=${wanted.by} options=${BY} onChoose=${(/** @type {string} */ by) => change({ ...wanted, by })} />
        <span>through these steps within</span><${Choice} title="Window" value=${String(wanted.window)} options=${WINDOWS} onChoose=${(/** @type {string} */ window) => change({ ...wanted, window: Number(window) })} />
        <span>by</span><${Choice} title="Group by" value=${wanted.groupBy ?? ""} options=${{ "": "nothing", ...Object.fromEntries(GROUPS.map((name) => [name, columnWords(name).toLowerCase()])) }}
          onChoose=${(/** @type {string} */ groupBy) => change({ ...wanted, groupBy: groupBy || undefined })} /></div>
      <ol class="steps">${wanted.steps.map((step, index) => html`<${StepEditor} key=${index} step=${step} number=${index + 1} columns=${columns}
        onChange=${(/** @type {Step} */ changed) => change({ ...wanted, steps: wanted.steps.with(index, changed) })}
        onRemove=${wanted.steps.length > 2 ? () => change({ ...wanted, steps: wanted.steps.toSpliced(index, 1) }) : undefined} />`)}</ol>
      ${wanted.steps.length < MAX_STEPS && html`<p class="actions"><button type="button" class="quiet" onClick=${() => change({ ...wanted, steps: [...wanted.steps, { filters: [] }] })}>+ Step</button></p>`}
    </section>
    ${error != null && html`<${Failure} error=${error} onRetry=${reload} />`}
    ${(value || error == null) && html`<section ...${marked({ isLoading }, "card answer")}>
      ${!value ? html`<${Skeleton} />` : isNobody(value.rows) ? html`<${Empty} title="Nobody took the first step in this range">Choose a longer one, or another first step.<//>` : value.wanted.groupBy ? html`<${Groups} rows=${value.rows} steps=${value.wanted.steps} group=${value.wanted.groupBy} />` : html`<${Steps} rows=${value.rows} steps=${value.wanted.steps} />`}
    </section>`}`;
}

/** @param {{step: Step, number: number, columns: import("../api/queries.js").Column[], onChange: (step: Step) => void, onRemove?: () => void}} props */
function StepEditor({ step, number, columns, onChange, onRemove }) {
  const filters = step.filters ?? [];
  const set = (/** @type {(string | number)[]} */ path, /** @type {unknown} */ changed) => onChange({ ...withAt(/** @type {any} */ (step), path, changed) });
  const shared = { table: "events", columns, set, at: () => ({}), form: `step ${number}` };
  return html`<li><b>${number}</b><input aria-label=${`Name of step ${number}`} placeholder=${stepName({ filters }, number)} value=${step.name ?? ""} onChange=${(/** @type {any} */ event) => onChange({ ...step, name: event.target.value || undefined })} />
    <div class="sentence">${filters.length === 0 && html`<span>any event</span>`}${filters.map((item, index) => html`${index > 0 && html`<span key=${`and ${index}`}>and</span>`}
      <${FilterWords} key=${`${index} ${JSON.stringify(item)}`} item=${item} path=${["filters", index]} ...${shared} />`)}
      <${AddFilter} path=${["filters", filters.length]} label=${filters.length ? "+" : "+ where"} ...${shared} /></div>
    ${onRemove && html`<button type="button" class="quiet" aria-label=${`Remove step ${number}`} onClick=${onRemove}>×</button>`}</li>`;
}

/** @param {{rows: Row[], steps: Step[]}} props */
function Steps({ rows, steps }) {
  return html`<div class="funnel"><ol>${rows.map((row, index) => html`<li key=${row["step"]}>
      <span class="name" title=${nameIn(steps, row)}><b>${row["step"]}</b> <bdi>${nameIn(steps, row)}</bdi></span>
      <span class="track"><i style=${{ width: `${100 * (row["rate"] ?? 0)}%` }}></i><span>${percent(row["rate"])}</span></span>
      <b class="number" title=${exactNumber(row["count"])}>${shortNumber(row["count"])}</b>
      <small class="faint">${index > 0 && html`${percent(ratio(row["count"], rows[index - 1]?.["count"]))} of the step before${row["medianSeconds"] != null && html`<br />median ${duration(row["medianSeconds"])} after the first`}`}</small></li>`)}</ol></div>`;
}

/** Groups below each other, so that a step of one is compared with that of another. @param {{rows: Row[], steps: Step[], group: string}} props */
function Groups({ rows, steps, group }) {
  const groups = [...rowsByValue(rows, group)];
  const first = groups[0]?.[1] ?? [];
  const all = first.map((row, index) => ({ ...row, count: groups.reduce((total, [, own]) => total + own[index]?.["count"], 0), medianSeconds: null }));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Steps of each group"><table class="data cohorts"><caption class="hidden">Share of each group that took the steps</caption>
      <thead><tr><th scope="col">${columnWords(group)}</th>${first.map((row) => html`<th key=${row["step"]} scope="col" class="number"><bdi title=${nameIn(steps, row)}>${nameIn(steps, row)}</bdi></th>`)}</tr></thead>
      <tbody>${groups.length > 1 && html`<tr class="all"><th scope="row">All</th><${Shares} rows=${all} /></tr>`}
        ${groups.slice(0, MAX_GROUPS).map(([value, own]) => html`<tr key=${String(value)}><th scope="row"><bdi title=${valueName(group, value)}>${valueName(group, value)}</bdi></th><${Shares} rows=${own} /></tr>`)}</tbody></table></div>
    ${groups.length > MAX_GROUPS && html`<p class="faint note">The ${MAX_GROUPS} groups that most began with, of ${exactNumber(groups.length)}.</p>`}`;
}

/** The steps of a group as cells. @param {{rows: Row[]}} props */
function Shares({ rows }) {
  const first = rows[0]?.["count"];
  return html`${rows.map((row, index) => {
    const share = ratio(row["count"], first);
    const before = index > 0 ? `${percent(ratio(row["count"], rows[index - 1]?.["count"]))} of the step before` : "";
    const median = row["medianSeconds"] != null ? `, median ${duration(row["medianSeconds"])} after the first` : "";
    return html`<td key=${row["step"]} class=${`number ${index > 0 ? "heat" : ""}`} style=${{ "--share": share ?? 0 }} title=${before + median}>${index === 0 ? shortNumber(row["count"]) : html`${percent(share)}${" "}<small>${shortNumber(row["count"])}</small>`}</td>`;
  })}`;
}

/** The name of a row's step. @param {Step[]} steps @param {Row} row */
function nameIn(steps, row) {
  return stepName(steps[row["step"] - 1] ?? {}, row["step"]);
}

/** Whether nobody took the first step. @param {Row[]} rows */
function isNobody(rows) {
  return !rows.some((row) => row["count"] > 0);
}

/** @param {number} part @param {number} whole */
function ratio(part, whole) {
  return whole ? part / whole : null;
}

/** The funnel of the URL, or one to begin with. @param {string} text @returns {Funnel} */
function funnelOf(text) {
  try {
    const found = parseJson(text);
    if (Array.isArray(found.steps) && found.steps.length >= 2 && found.steps.every(hasFilters)) return { window: FIRST.window, by: FIRST.by, ...withoutNulls(found) };
  } catch {
    // No funnel, or a broken one: the first one is shown and written into the URL.
  }
  queueMicrotask(() => page.value.view === "funnels" && amend({ query: JSON.stringify(FIRST) }));
  return FIRST;
}
