/** A custom query as a sentence. Each word is a button; the JSON says the same. */

import { page } from "../../app_state.js";
import { rowSpan } from "../../api/queries.js";
import { usePanelDraft } from "../../controls/draft.js";
import { RangePanel, zones } from "../../controls/range_picker.js";
import { AddFilter, FilterWords } from "../../controls/filter_words.js";
import { SelectEditor, selectWords } from "../../controls/select_editor.js";
import { Choice, Word } from "../../controls/word.js";
import { html } from "../../html.js";
import { boundsOf, bucketCount, isDate, isTimezone, MAX_DAYS, suitableGranularity } from "../../state/dates.js";
import { columnWords, filterSentence, isObject } from "../../state/filters.js";
import { rangeName } from "../../state/format.js";
import { numberOf } from "../../state/json.js";
import { outputColumns, withAt, withRange } from "../../state/query_body.js";
import { corrected } from "../../state/refusals.js";

/** @typedef {import("../../api/queries.js").CustomBody} CustomBody */
/** @typedef {import("../../api/queries.js").Schema} Schema */
/** @typedef {import("../../state/query_body.js").Path} Path */
/** @typedef {import("../../state/refusals.js").Refusal} Refusal */
/** @typedef {import("../../state/dates.js").Bounds} Bounds */
/** @typedef {{body: CustomBody, schema: Schema, refusal: Refusal | null, onChange: (body: CustomBody) => void}} Props */

const BUCKETS = { "": "one total", hourly: "hour", daily: "day", weekly: "week", monthly: "month" };
const TOTALS = { "": "without totals", true: "with totals of all rows" };
const LIMITS = [10, 50, 100, 1000, 10_000];

/** @param {Props} props */
export function Sentence(props) {
  const { body, schema, refusal, onChange } = props;
  const { query } = body;
  const table = schema.tables.find(({ name }) => name === query.table);
  const columns = table?.columns ?? [];
  const set = (/** @type {Path} */ path, /** @type {unknown} */ value) => onChange(withAt(body, path, value));
  const at = (/** @type {Path} */ ...path) => ({
    refusal: refusal && JSON.stringify(refusal.path) === JSON.stringify(path) ? refusal : null,
    onCorrect: () => refusal && onChange(corrected(body, refusal)),
  });
  const filterProps = { table: query.table, columns: columns.filter(({ filterable }) => filterable), at, set, form: "sentence" };
  return html`<div class="sentence" role="group" aria-label="Query">
    <span>Show</span>
    ${query.selects.map((select, index) => html`<${Word} key=${`select ${index} ${JSON.stringify(select)}`} ...${at("query", "selects", index)} draft=${`figure ${index}`} title="Figure" label=${selectLabel(select)}>
      ${(/** @type {() => void} */ close) => html`<${SelectEditor} select=${select} columns=${columns} aggregates=${schema.aggregates}
        onDone=${(/** @type {any} */ changed) => (close(), set(["query", "selects", index], changed))}
        onRemove=${query.selects.length > 1 ? () => (close(), set(["query", "selects", index], undefined)) : undefined} />`}<//>`)}
    <${Word} isAdd=${true} draft="figure" title="Add a figure" ...${at("query", "selects")} label="+">${(/** @type {() => void} */ close) => html`<${SelectEditor} columns=${columns} aggregates=${schema.aggregates}
      onDone=${(/** @type {any} */ made) => (close(), set(["query", "selects", query.selects.length], made))} />`}<//>
    <span>of</span>
    <${Choice} title="Table" value=${query.table} ...${at("query", "table")} options=${schema.tables.map(({ name, description }) => ({ value: name, hint: description }))}
      onChoose=${(/** @type {string} */ name) => onChange({ ...body, query: { ...query, table: name } })} />
    ${(query.filters ?? []).map((item, index) => html`<span key=${`word ${index}`}>${index ? "and" : "where"}</span>
      <${FilterWords} key=${`filter ${index} ${JSON.stringify(item)}`} item=${item} path=${["query", "filters", index]} ...${filterProps} />`)}
    <${AddFilter} path=${["query", "filters", query.filters?.length ?? 0]} label=${query.filters?.length ? "+" : "+ where"} ...${filterProps} ...${at("query", "filters")} />
    ${(query.groupBy ?? []).map((column, index) => html`<span key=${`by ${index}`}>${index ? "and" : "by"}</span>
      <${Choice} key=${`group ${index} ${column}`} title="Group by" value=${column} label=${columnWords(column).toLowerCase()} isSearchable=${true} takesOther="last" ...${at("query", "groupBy", index)}
        options=${columnOptions(columns)} onChoose=${(/** @type {string} */ name) => set(["query", "groupBy", index], name)} onRemove=${() => onChange(withoutGroup(body, index))} />`)}
    <${Choice} isAdd=${true} title="Group by" label=${query.groupBy?.length ? "+" : "+ by"} isSearchable=${true} takesOther="last" ...${at("query", "groupBy")} options=${columnOptions(columns)}
      onChoose=${(/** @type {string} */ name) => set(["query", "groupBy", query.groupBy?.length ?? 0], name)} />
    <span>${body.granularity ? "per" : "as"}</span>
    <${Choice} title="Bucket" value=${body.granularity ?? ""} label=${BUCKETS[/** @type {""} */ (body.granularity ?? "")] ?? body.granularity} ...${at("granularity")}
      options=${Object.entries(BUCKETS).map(([value, label]) => ({ value, label }))} onChoose=${(/** @type {string} */ bucket) => onChange(withBucket(body, bucket))} />
    <span>over</span>
    <${Word} draft="days" title="Range of days" label=${rangeLabel(body)} ...${at("startDate")}>${(/** @type {() => void} */ close) => html`<${RangePanel}
      range=${rangeOf(body)} bounds=${boundsOf(rangeOf(body), zoneOf(body))} onChoose=${async (/** @type {any} */ range) => (close(), onChange("isAll" in range ? await withAllDays(body) : withRange(body, range)))} />`}<//>
    <span>in</span>
    <${Choice} title="Time zone" value=${body.timezone ?? "UTC"} isSearchable=${true} ...${at("timezone")} options=${zones()} onChoose=${(/** @type {string} */ zone) => set(["timezone"], zone)} />
    <${More} ...${props} set=${set} at=${at} />
  </div>`;
}

/** What a query rarely needs. @param {Props & {set: (path: Path, value: unknown) => void, at: (...path: Path) => any}} props */
function More({ body, set, at, onChange }) {
  const names = [...outputColumns(body).values];
  const order = body.orderBy?.[0];
  const orders = [...outputColumns(body).date, ...(body.query.groupBy ?? []), ...names].flatMap((field) => ["desc", "asc"].map((direction) => ({
    value: `${field} ${direction}`, label: `${field}, ${direction === "desc" ? "highest first" : "lowest first"}`,
  })));
  const compares = { "": "nothing", previous_period: "the previous period", previous_year: "the previous year" };
  const tops = [5, 10, 20, 50].flatMap((top) => [false, true].map((others) => ({ value: topValue({ top, others }), label: topWords({ top, others }) })));
  const compare = isObject(body.compare) ? daysLabel(/** @type {Bounds} */ (body.compare)) : compares[/** @type {""} */ (body.compare ?? "")];
  const hasTop = Boolean(body.granularity && body.query.groupBy?.length);
  return html`
    ${hasTop && html`<span>of</span><${Choice} title="Groups" value=${topValue(body)} label=${topWords(body)} options=${[{ value: "", label: topWords({}) }, ...tops]} ...${at("top")}
      onChoose=${(/** @type {string} */ chosen) => onChange(withTop(body, chosen))} />`}
    ${body.compare && html`<span>beside</span>`}<${Choice} title="Compare with" isAdd=${!body.compare} value=${body.compare ?? ""} label=${body.compare ? compare : "+ beside"} ...${at("compare")} options=${Object.entries(compares).map(([value, label]) => ({ value, label }))}
      onChoose=${(/** @type {string} */ chosen) => set(["compare"], chosen || undefined)} />
    <span>ordered by</span><${Choice} title="Order" value=${order ? `${order.field} ${order.direction ?? "asc"}` : ""} ...${at("orderBy")} label=${order ? `${order.field}, ${order.direction === "desc" ? "highest first" : "lowest first"}` : body.granularity ? "date" : "first figure"}
      options=${[{ value: "", label: "the usual order" }, ...orders]} onChoose=${(/** @type {string} */ chosen) => set(["orderBy"], orderOf(chosen))} />
    <span>at most</span><${Choice} title="Rows" value=${String(body.limit ?? 1000)} label=${`${(body.limit ?? 1000).toLocaleString("en")} ${body.limit === 1 ? "row" : "rows"}`} ...${at("limit")}
      options=${LIMITS.map((limit) => ({ value: String(limit), label: limit.toLocaleString("en") }))} onChoose=${(/** @type {string} */ limit) => set(["limit"], Number(limit))} />
    <${Having} body=${body} set=${set} names=${names} at=${at} />
    <${Choice} title="Totals" isAdd=${!body.totals} value=${body.totals ? "true" : ""} label=${body.totals ? "with totals" : "+ totals"} ...${at("totals")} options=${TOTALS} onChoose=${(/** @type {string} */ chosen) => set(["totals"], chosen === "true" || undefined)} />`;
}

/** Without groups there is none to choose. @param {CustomBody} body @param {number} index @returns {CustomBody} */
function withoutGroup(body, index) {
  const rest = withAt(body, ["query", "groupBy", index], undefined);
  return rest.query.groupBy ? rest : withTop(rest, "");
}

/** @param {{top?: number, others?: boolean}} body */
function topValue({ top, others }) {
  return top ? `${top}${others ? " and others" : ""}` : "";
}

/** @param {{top?: number, others?: boolean}} body */
function topWords({ top, others }) {
  if (!top) return "all groups";
  return `the ${top} highest${others ? ", and all others in one" : ""}`;
}

/** @param {CustomBody} body @param {string} chosen @returns {CustomBody} */
function withTop({ top: _, others: __, ...body }, chosen) {
  const top = Number.parseInt(chosen, 10);
  return chosen ? { ...body, top, ...(chosen.endsWith("others") && { others: true }) } : body;
}

/** @param {{body: CustomBody, set: (path: Path, value: unknown) => void, names: string[], at: (...path: Path) => any}} props */
function Having({ body, set, names, at }) {
  const list = body.having ?? [];
  const form = (/** @type {number} */ index, /** @type {() => void} */ close) => html`<${HavingForm} names=${names} entry=${list[index]}
    onDone=${(/** @type {any} */ entry) => (close(), set(["having", index], entry))} onRemove=${list[index] ? () => (close(), set(["having", index], undefined)) : undefined} />`;
  return html`${list.map((entry, index) => html`<span key=${`having ${index}`}>${index ? "and" : "having"}</span>
      <${Word} key=${`condition ${index}`} draft=${`condition ${index}`} title="Condition for rows" label=${filterSentence(entry)} ...${index === 0 ? at("having") : {}}>${(/** @type {() => void} */ close) => form(index, close)}<//>`)}
    <${Word} isAdd=${true} draft="condition" title="Condition for rows" label=${list.length ? "+" : "+ having"}>${(/** @type {() => void} */ close) => form(list.length, close)}<//>`;
}

/** @param {{names: string[], entry?: {field: string, operator: string, value: number | bigint}, onDone: (entry: object) => void, onRemove?: () => void}} props */
function HavingForm({ names, entry, onDone, onRemove }) {
  const [field, setField] = usePanelDraft("figure", () => entry?.field ?? names[0] ?? "");
  const [operator, setOperator] = usePanelDraft("operator", () => entry?.operator ?? "gte");
  const [value, setValue] = usePanelDraft("value", () => String(entry?.value ?? ""));
  const number = numberOf(value);
  const isReady = number !== undefined;
  const input = (/** @type {(text: string) => void} */ change) => (/** @type {any} */ event) => change(event.target.value);
  return html`<form class="value-form" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), isReady && onDone({ field, operator, value: number }))}>
    <select aria-label="Figure" value=${field} onChange=${input(setField)}>${names.map((name) => html`<option key=${name}>${name}</option>`)}</select>
    <select aria-label="Operator" value=${operator} onChange=${input(setOperator)}>${["eq", "ne", "gt", "gte", "lt", "lte"].map((name) => html`<option key=${name} value=${name}>${filterSentence({ field: "", operator: name }).trim()}</option>`)}</select>
    <input inputmode="decimal" aria-label="Value" aria-invalid=${value !== "" && !isReady} value=${value} onInput=${input(setValue)} />
    <button type="submit" class="primary" disabled=${!isReady}>Apply</button>
    ${onRemove && html`<button type="button" class="quiet danger" onClick=${onRemove}>Remove</button>`}</form>`;
}

/** @param {import("../../api/queries.js").Select} select */
function selectLabel(select) {
  const own = (select.filters ?? []).map(filterSentence).join(" and ");
  return `${selectWords(select)}${own ? ` where ${own}` : ""}`;
}

/** @param {import("../../api/queries.js").Column[]} columns */
function columnOptions(columns) {
  return columns.map(({ name, description }) => ({ value: name, label: columnWords(name), hint: description.length < 50 ? description : name }));
}

/** @param {string} chosen */
function orderOf(chosen) {
  const [, field, direction] = /^(.*) (asc|desc)$/.exec(chosen) ?? [];
  return field ? [{ field, direction }] : undefined;
}

/** @param {CustomBody} body @returns {import("../../state/dates.js").Range} */
function rangeOf({ lastDays, startDate, endDate }) {
  return lastDays !== undefined || !startDate ? { last: Number(lastDays) || 30 } : { from: startDate, to: endDate ?? startDate };
}

/** @param {CustomBody} body */
function rangeLabel({ lastDays, startDate, endDate }) {
  if (lastDays !== undefined) return lastDays === 1 ? "today" : `the last ${lastDays} days`;
  return startDate && endDate ? daysLabel({ startDate, endDate }) : "no days";
}

/** Days as they are written where they are none: the service says what is wrong with them. @param {Bounds} days */
function daysLabel(days) {
  const { startDate, endDate } = days;
  return isDate(startDate) && isDate(endDate) ? rangeName(days) : `${startDate} – ${endDate}`;
}

/** The zone in which a query's days are looked for. @param {CustomBody} body */
function zoneOf({ timezone = "UTC" }) {
  return isTimezone(timezone) ? timezone : "UTC";
}

/** From the first row to today. Buckets that are more than the rows of the answer become longer. @param {CustomBody} body @returns {Promise<CustomBody>} */
async function withAllDays(body) {
  const { query, granularity, limit = 1000 } = body;
  try {
    const { first } = await rowSpan(page.value.website, undefined, /^(sessions|profiles)$/.test(query.table) ? "events" : query.table);
    const bounds = boundsOf({ isAll: true }, zoneOf(body), Date.now(), first);
    const whole = withRange(body, { from: bounds.startDate, to: bounds.endDate });
    return granularity && bucketCount(bounds, granularity) > limit ? { ...whole, granularity: suitableGranularity(bounds) } : whole;
  } catch {
    return withRange(body, { last: MAX_DAYS });
  }
}

/** Without buckets there is nothing to fill and no group to follow. @param {CustomBody} body @param {string} bucket @returns {CustomBody} */
function withBucket({ granularity: _, fill, top, others, ...body }, bucket) {
  if (!bucket) return body;
  const isFilled = fill ?? (!body.query.groupBy?.length && !body.having?.length);
  return { ...body, granularity: bucket, ...(isFilled && { fill: true }), ...(top !== undefined && { top }), ...(others !== undefined && { others }) };
}
