/** The answer of a custom query: over time, as bars, as a table, as one number; and how it came about. */

import { DataTable, plain } from "../../charts/data_table.js";
import { TimeSeries } from "../../charts/timeseries.js";
import { Empty } from "../../controls/messages.js";
import { TabPanel, Tabs } from "../../controls/tabs.js";
import { html } from "../../html.js";
import { openBucket } from "../../state/dates.js";
import { bucketName, bucketTime, counted, countryName, datetime, exactNumber, shortNumber, valueName, valueText } from "../../state/format.js";
import { outputColumns, outputName } from "../../state/query_body.js";
import { useId, useState } from "../../vendor/hooks.js";

/** @typedef {import("../../api/queries.js").CustomBody} CustomBody */
/** @typedef {import("../../api/queries.js").Answer} Answer */
/** @typedef {import("../../charts/data_table.js").Order} Order */
/** @typedef {Record<string, any>} Row */

const MAX_LINES = 8;
const MAX_BARS = 40;
const OTHERS = "all others";
const OTHERS_COLOR = "--faint";
const VIEWS = /** @type {Record<string, string>} */ ({ line: "Over time", bars: "Bars", table: "Table", number: "Number" });

/** The ways in which a query can be shown, best first. @param {CustomBody} body */
function viewsOf(body) {
  const { date, groups } = outputColumns(body);
  if (groups.length + date.length && numberNames(body).length === 0) return ["table"];
  if (date.length) return ["line", "table"];
  return groups.length ? ["bars", "table"] : ["number", "table"];
}

/** The outputs that can be drawn: all but datetimes. @param {CustomBody} body */
function numberNames({ query }) {
  return query.selects.filter(({ aggregate }) => aggregate !== "earliest" && aggregate !== "latest").map(outputName);
}

/** @param {{body: CustomBody, answer: Answer, view: string, onView: (view: string) => void, onOrder: (order: Order) => void}} props */
export function AnswerView({ body, answer, view, onView, onOrder }) {
  const id = useId();
  const views = viewsOf(body);
  const shown = views.includes(view) ? view : String(views[0]);
  const View = { line: Line, bars: Bars, number: Numbers, table: Table }[shown] ?? Table;
  return html`<section class="card answer">
    <header><${Tabs} id=${id} label="Views of the answer" tabs=${views.map((name) => [name, VIEWS[name]])} value=${shown} onChoose=${onView} /></header>
    <${TabPanel} id=${id} value=${shown}>${answer.data.length ? html`<${View} body=${body} answer=${answer} onOrder=${onOrder} />` : html`<${Empty} title="No rows">Nothing matches this query in this range.<//>`}<//>
    <${Truth} body=${body} meta=${answer.meta} />
  </section>`;
}

/** @param {{body: CustomBody, answer: Answer}} props */
function Line({ body, answer }) {
  const { groups } = outputColumns(body);
  const values = numberNames(body);
  const dates = [...new Set(answer.data.map((row) => row["date"]))].sort();
  const drawn = groups.length ? groupSeries(answer.data, dates, groups, String(values[0])) : valueSeries(answer.data, dates, values, Boolean(body.compare));
  const dropped = groups.length ? new Set(answer.data.map((row) => groupName(row, groups))).size - drawn.length : 0;
  const lines = [...drawn, ...otherSeries(answer.others, dates, String(values[0]))];
  const series = lines.map((one, index) => ({ color: `--series-${lineIndex(lines, index)}`, ...one })); // a line keeps its colour when others are hidden
  const [hidden, setHidden] = useState(/** @type {string[]} */ ([]));
  const shown = series.filter(({ label }) => !hidden.includes(label));
  const turn = (/** @type {string} */ label) => setHidden(hidden.includes(label) ? hidden.filter((one) => one !== label) : shown.length > 1 ? [...hidden, label] : []);
  return html`
    <div class="chart-head"><p class="legend">${series.map((one, index) => html`<span key=${one.label} class=${one.isPrevious ? "before" : ""}><${Name} label=${one.label} isShown=${!hidden.includes(one.label)} onTurn=${series.length > 1 ? turn : undefined}
        tone=${one.isPrevious ? "dashed" : one.color === OTHERS_COLOR ? "tone-others" : `tone-${lineIndex(series, index)}`} /></span>`)}
      ${dropped > 0 && html`<span class="faint">and ${counted(dropped, "more group", "more groups")} in the table</span>`}</p></div>
    <${TimeSeries} label="Answer over time" height=${320} times=${dates.map(bucketTime)} series=${shown} open=${openBucket(dates, body.granularity ?? "daily", body.timezone ?? "UTC")} format=${exactNumber} axisFormat=${shortNumber}
      names=${(/** @type {number} */ index) => bucketName(dates[index] ?? "", body.granularity ?? "daily")} />`;
}

/** The name of a line; where there are several, a click hides its line, or shows it again. @param {{label: string, tone: string, isShown: boolean, onTurn?: (label: string) => void}} props */
function Name({ label, tone, isShown, onTurn }) {
  const name = html`<i class=${`line ${tone}`}></i><bdi title=${label}>${label}</bdi>`;
  return onTurn ? html`<button type="button" class="link" aria-pressed=${isShown} onClick=${() => onTurn(label)}>${name}</button>` : name;
}

/** Which of the colours a line has, from 1 on. @param {{isPrevious?: boolean}[]} series @param {number} index */
function lineIndex(series, index) {
  return (series.slice(0, index).filter(({ isPrevious }) => !isPrevious).length % MAX_LINES) + 1;
}

/** @param {Row[]} rows @param {string[]} dates @param {string[]} values @param {boolean} isCompared @returns {import("../../charts/timeseries.js").Series[]} */
function valueSeries(rows, dates, values, isCompared) {
  const byDate = new Map(rows.map((row) => [row["date"], row]));
  const current = values.map((name) => ({ label: name, values: dates.map((date) => numberOf(byDate.get(date)?.[name])) }));
  if (!isCompared) return current;
  const before = values.map((name) => ({ label: `${name} before`, isPrevious: true, values: dates.map((date) => numberOf(byDate.get(date)?.["previous"]?.[name])) }));
  return [...before, ...current];
}

/** @param {Row[]} rows @param {string[]} dates @param {string[]} groups @param {string} value @returns {import("../../charts/timeseries.js").Series[]} */
function groupSeries(rows, dates, groups, value) {
  /** @type {Map<string, Map<string, number | null>>} */
  const byGroup = new Map();
  for (const row of rows) {
    const name = groupName(row, groups);
    if (!byGroup.has(name)) byGroup.set(name, new Map());
    byGroup.get(name)?.set(row["date"], numberOf(row[value]));
  }
  const total = (/** @type {Map<string, number | null>} */ points) => [...points.values()].reduce((/** @type {number} */ sum, point) => sum + (point ?? 0), 0);
  return [...byGroup]
    .sort(([, one], [, other]) => total(other) - total(one))
    .slice(0, MAX_LINES)
    .map(([label, points]) => ({ label, values: dates.map((date) => points.get(date) ?? null) }));
}

/** All groups that are not among the highest, as one line. @param {Row[] | undefined} rows @param {string[]} dates @param {string} value @returns {import("../../charts/timeseries.js").Series[]} */
function otherSeries(rows, dates, value) {
  if (!rows?.length) return [];
  const byDate = new Map(rows.map((row) => [row["date"], row]));
  return [{ label: OTHERS, color: OTHERS_COLOR, values: dates.map((date) => numberOf(byDate.get(date)?.[value])) }];
}

/** @param {{body: CustomBody, answer: Answer}} props */
function Bars({ body, answer }) {
  const { groups } = outputColumns(body);
  const value = String(numberNames(body)[0]);
  const rows = answer.data.slice(0, MAX_BARS);
  const highest = Math.max(1e-12, ...rows.map((row) => numberOf(row[value]) ?? 0));
  const shown = shownIn(body);
  return html`<ol class="ranked tall">${rows.map((row, index) => html`<li key=${index}><div>
      <i style=${{ "--share": Math.max(0, numberOf(row[value]) ?? 0) / highest }}></i><bdi title=${groupName(row, groups)}>${groupName(row, groups)}</bdi>
      ${row["previous"] !== undefined && html`<small title=${shown(row["previous"]?.[value], exactNumber)}>${row["previous"] === null ? "new" : `was ${shown(row["previous"][value], shortNumber)}`}</small>`}<b title=${shown(row[value], exactNumber)}>${shown(row[value], shortNumber)}</b></div></li>`)}</ol>
    ${answer.data.length > MAX_BARS && html`<p class="faint note">The first ${MAX_BARS} of ${exactNumber(answer.data.length)} rows. The table has all.</p>`}`;
}

/** @param {{body: CustomBody, answer: Answer}} props */
function Numbers({ body, answer }) {
  const row = answer.data[0] ?? {};
  const shown = shownIn(body);
  return html`<div class="numbers">${outputColumns(body).values.map((name) => html`<div key=${name}><span class="name"><bdi>${name}</bdi></span>
    <b title=${String(row[name])} class=${typeof row[name] === "string" ? "text" : ""}>${shown(row[name], shortNumber)}</b>
    ${row["previous"] !== undefined && html`<small class="faint" title=${shown(row["previous"]?.[name], exactNumber)}>was ${shown(row["previous"]?.[name], shortNumber)}</small>`}</div>`)}</div>`;
}

/** How values are written: datetimes in the zone of the query. @param {CustomBody} body */
function shownIn({ timezone = "UTC" }) {
  return (/** @type {any} */ value, /** @type {(value: number) => string} */ format) => valueText(value, timezone, format);
}

/** @param {{body: CustomBody, answer: Answer, onOrder: (order: Order) => void}} props */
function Table({ body, answer, onOrder }) {
  const { date, groups, values } = outputColumns(body);
  const bucket = body.granularity ?? "daily";
  const shown = shownIn(body);
  const valueCell = (/** @type {any} */ value) => shown(value, exactNumber);
  const columns = [
    ...date.map((key) => ({ key, label: "date", isSortable: true, format: (/** @type {string} */ value) => bucketName(value, bucket) })),
    ...groups.map((key) => ({ key, label: key, isSortable: true, ...(key === "country" && { format: countryCell }) })),
    ...values.map((key) => ({ key, label: key, isSortable: true, isNumber: true, hasBar: true, format: valueCell, ...(body.compare && { before: `previous.${key}` }) })),
    ...(body.compare ? values.map((key) => ({ key: `previous.${key}`, label: `${key} before`, isNumber: true, isMinor: true, format: valueCell })) : []),
  ];
  const flat = (/** @type {Row} */ row) => ({ ...row, ...Object.fromEntries(values.map((key) => [`previous.${key}`, row["previous"]?.[key]])) });
  const others = (answer.others ?? []).map((row) => ({ ...row, ...Object.fromEntries(groups.map((key) => [key, OTHERS])) }));
  const rows = [...answer.data, ...others].map(flat);
  const isWide = date.length + groups.length > 1 || values.length > 2 || values.some((key) => rows.some((row) => typeof row[key] === "string"));
  return html`<${DataTable} caption="Answer" columns=${columns} rows=${rows} isStacked=${isWide} order=${body.orderBy?.[0]} onOrder=${body.top || rows.length < 2 ? undefined : onOrder} totals=${answer.totals && flat(answer.totals)} />`;
}

/** @param {string | null} code */
function countryCell(code) {
  return code ? countryName(code) : plain(code);
}

/** How the answer came about. @param {{body: CustomBody, meta: Answer["meta"]}} props */
function Truth({ body, meta }) {
  const facts = [
    `${exactNumber(meta.rowCount)} ${meta.rowCount === 1 ? "row" : "rows"}${meta["truncated"] ? ", more exist" : ""}`,
    meta["rowsRead"] === undefined ? "" : `${exactNumber(meta["rowsRead"])} rows read`,
    `${exactNumber(Number(meta.executionTime.toPrecision(3)))} ms`,
    meta["cached"] === undefined ? "" : meta["cached"] ? "from the cache, still current" : "computed now",
    meta["watermark"] ? `all events up to ${datetime(meta["watermark"], body.timezone ?? "UTC")}` : "all acknowledged events",
    "exact, not sampled",
  ];
  return html`<footer class="truth">${facts.filter(Boolean).map((fact) => html`<span key=${fact}>${fact}</span>`)}</footer>`;
}

/** @param {Row} row @param {string[]} groups */
function groupName(row, groups) {
  return groups.map((column) => valueName(column, row[column])).join(" · ");
}

/** @param {any} value @returns {number | null} */
function numberOf(value) {
  return typeof value === "number" ? value : null;
}
