/** Errors in groups, and one group with its stacks and what its sessions did before. */

import { bounds, granularity, page, timezone, urlWith, viewUrl } from "../app_state.js";
import { custom, schema } from "../api/queries.js";
import { ChartOrTable } from "../charts/chart_or_table.js";
import { DataTable } from "../charts/data_table.js";
import { Sparkline } from "../charts/sparkline.js";
import { FilterBar } from "../controls/filter_bar.js";
import { useLoad } from "../controls/load.js";
import { Empty, Failure, marked, Skeleton } from "../controls/messages.js";
import { RangePicker } from "../controls/range_picker.js";
import { html } from "../html.js";
import { bucketCount, hasBegun, openBucket } from "../state/dates.js";
import { ago, bucketName, bucketTime, counted, datetime, exactNumber, shortNumber } from "../state/format.js";
import { firstByValue, rowsByValue } from "../state/rows.js";
import { useState } from "../vendor/hooks.js";

/** @typedef {import("../state/query_body.js").CustomBody} CustomBody */
/** @typedef {Record<string, any>} Row */

const COLUMNS = ["message", "error_type", "level", "path", "filename", "browser_name", "os_name", "device_type", "country"];
const COUNT = { field: "*", aggregate: "count", alias: "errors" };
const VISITORS = { field: "anonymous_id", aggregate: "uniq", alias: "visitors" };
const SESSIONS = { field: "session_id", aggregate: "uniq", alias: "sessions" };
const BROWSERS = { field: "browser_name", aggregate: "uniq", alias: "browsers" };
const SPAN = [
  { field: "time", aggregate: "earliest", alias: "first" },
  { field: "time", aggregate: "latest", alias: "last" },
];
const MAX_GROUPS = 50;
const MAX_ROWS = 10_000;

export function Errors() {
  const known = useLoad("schema", schema);
  const table = known.value?.tables.find(({ name }) => name === "errors");
  const key = table?.columns.some(({ name }) => name === "fingerprint") ? "fingerprint" : "message";
  return html`
    <div class="toolbar"><${RangePicker} hasCompare=${false} /><${FilterBar} columns=${COLUMNS} table="errors" /></div>
    ${known.error != null && html`<${Failure} error=${known.error} onRetry=${known.reload} />`}
    ${!table && known.error == null && html`<section class="card"><${Skeleton} lines=${9} /></section>`}
    ${table && (page.value.item ? html`<${Group} key=${page.value.item} column=${key} id=${page.value.item} />` : html`<${Groups} column=${key} />`)}`;
}

/** @param {{column: string}} props */
function Groups({ column }) {
  const { filters } = page.value;
  const groups = useQuery({ query: { table: "errors", selects: [COUNT, VISITORS, SESSIONS, BROWSERS, ...SPAN], groupBy: [column], filters }, limit: MAX_GROUPS });
  const texts = useQuery({ query: { table: "errors", selects: [COUNT], groupBy: [...new Set([column, "error_type", "message"])], filters }, limit: 1000 });
  const series = useQuery({ query: { table: "errors", selects: [COUNT], groupBy: [column], filters }, granularity: granularity.value, fill: true, top: Math.max(1, Math.min(MAX_GROUPS, Math.floor(MAX_ROWS / bucketCount(bounds.value, granularity.value)))), limit: MAX_ROWS });
  if (groups.error != null) return html`<${Failure} error=${groups.error} onRetry=${groups.reload} />`;
  if (!groups.value || (!texts.value && texts.error == null)) return html`<section class="card"><${Skeleton} lines=${9} /></section>`;
  if (groups.value.data.length === 0) {
    return html`<section class="card">${filters.length ? html`<${Empty} title="No errors with these filters in this range">Remove a filter, or choose a longer range.<//>` : html`<${Empty} title="No errors in this range">The tracker reports them from the browsers of visitors. <a href=${viewUrl("setup")}>Setup</a> has the line for your pages.<//>`}</section>`;
  }
  const described = firstByValue(texts.value?.data ?? [], column);
  const lines = rowsByValue(series.value?.data ?? [], column);
  return html`<section ...${marked({ isLoading: groups.isLoading || series.isLoading }, "card")}><ul class="error-groups">
    <li class="head" aria-hidden="true"><span>Error</span><span>Over time</span><span class="number">Errors</span><span class="number">Visitors</span><span class="number">Sessions</span><span class="number">Browsers</span><span>Seen</span></li>
    ${groups.value.data.map((row) => html`<li key=${row[column]}><a href=${viewUrl("errors", String(row[column]))}>
      <${Title} row=${described.get(row[column]) ?? { message: row["message"] ?? row[column] }} />
      <${Sparkline} values=${(lines.get(row[column]) ?? []).filter((one) => hasBegun(one["date"], timezone.value)).map((one) => one["errors"])} />
      <b class="number" title=${exactNumber(row["errors"])}><${Count} count=${row["errors"]} unit="error" /></b>
      ${["visitor", "session", "browser"].map((unit) => html`<span key=${unit} class="number" title=${exactNumber(row[`${unit}s`])}><${Count} count=${row[`${unit}s`]} unit=${unit} /></span>`)}
      <span class="seen" title=${`First ${datetime(row["first"], timezone.value)}, last ${datetime(row["last"], timezone.value)}`}><span class="hidden">last </span>${ago(row["last"])}<small class="faint">first ${ago(row["first"])}</small></span></a></li>`)}</ul>
    ${groups.value.meta["truncated"] && html`<p class="faint note">The ${MAX_GROUPS} most frequent. Explore has the rest.</p>`}</section>`;
}

/** A number, and what it counts for those who do not see the head above it. @param {{count: number, unit: string}} props */
function Count({ count, unit }) {
  return html`${shortNumber(count)}<span class="unit"> ${count === 1 ? unit : `${unit}s`}</span>`;
}

/** @param {{row: Row}} props */
function Title({ row }) {
  return html`<span class="what"><b><bdi>${row["error_type"] || "Error"}</bdi></b><bdi class="message" title=${row["message"]}>${row["message"] || "(no message)"}</bdi></span>`;
}

/** @param {{column: string, id: string}} props */
function Group({ column, id }) {
  const filters = [{ field: column, operator: "eq", value: id }, ...page.value.filters];
  const about = useQuery({ query: { table: "errors", selects: [COUNT, VISITORS, SESSIONS, ...SPAN], groupBy: ["error_type", "message"], filters }, totals: true, limit: 20 });
  const series = useQuery({ query: { table: "errors", selects: [COUNT], filters }, granularity: granularity.value, fill: true, limit: 10_000 });
  const stacks = useQuery({ query: { table: "errors", selects: [COUNT], groupBy: ["stack"], filters }, limit: 5 });
  const places = useQuery({ query: { table: "errors", selects: [COUNT], groupBy: ["path", "browser_name", "os_name"], filters }, limit: 50 });
  const sessions = useQuery({ query: { table: "errors", selects: [COUNT, ...SPAN], groupBy: ["session_id"], filters }, orderBy: [{ field: "last", direction: "desc" }], limit: 8 });
  const rows = about.value?.data ?? [];
  const points = series.value?.data ?? [];
  const before = (sessions.value?.data ?? []).filter((row) => row["session_id"]);
  const back = html`<p class="back"><a href=${urlWith({ item: "" })}>‹ All errors</a></p>`;
  if (about.error != null) return html`${back}<${Failure} error=${about.error} onRetry=${about.reload} />`;
  if (!about.value) return html`${back}<section class="card"><${Skeleton} /></section>`;
  if (rows.length === 0) return html`${back}<section class="card"><${Empty} title="This error did not occur in this range">Choose a longer one${page.value.filters.length > 0 ? ", or remove a filter" : ""}.<//></section>`;
  const totals = about.value.totals ?? {};
  return html`${back}
    <section ...${marked({ isLoading: about.isLoading || series.isLoading }, "card lead")}><div class="error-head"><${Title} row=${rows[0] ?? {}} />
      <p class="faint">${counted(totals["errors"], "error", "errors")} · ${counted(totals["visitors"], "visitor", "visitors")} · ${counted(totals["sessions"], "session", "sessions")} · first ${datetime(totals["first"], timezone.value)} · last ${datetime(totals["last"], timezone.value)}</p></div>
      <${ChartOrTable} caption="Errors over time" head=${html`<h2>Over time</h2>`} rows=${points}
        columns=${[{ key: "date", label: "Date", format: (/** @type {string} */ date) => bucketName(date, granularity.value) }, { key: "errors", label: "Errors", isNumber: true, hasBar: true }]}
        chart=${{ height: 160, open: openBucket(points.map((row) => row["date"]), granularity.value, timezone.value), times: points.map((row) => bucketTime(row["date"])), series: [{ label: "Errors", values: points.map((row) => row["errors"]), color: "--bad" }],
          names: (/** @type {number} */ index) => bucketName(points[index]?.["date"], granularity.value), format: exactNumber, axisFormat: shortNumber }} /></section>
    <div class="cards two">
      <div class="column">
        <section ...${marked(stacks, "card")}><h2 class="pad">Stacks</h2><${Waiting} load=${stacks} />${(stacks.value?.data ?? []).map((row) => html`<details key=${row["stack"]} open=${true}><summary>${counted(row["errors"], "time", "times")}</summary><pre tabindex="0">${row["stack"] || "No stack was sent"}</pre></details>`)}</section>
        <section ...${marked(sessions, "card")}><h2 class="pad">What sessions did before</h2><${Waiting} load=${sessions} />${sessions.value && before.length === 0 && html`<p class="faint note">No error of these came with a session.</p>`}${before.map((row) => html`<${Before} key=${row["session_id"]} session=${row["session_id"]} last=${row["last"]} />`)}</section>
      </div>
      <div class="column">
        <section ...${marked(places, "card")}><h2 class="pad">Where</h2><${Waiting} load=${places} />${places.value && html`<${DataTable} caption="Where it happened" rows=${places.value.data} columns=${[{ key: "path", label: "Page" }, { key: "browser_name", label: "Browser" }, { key: "os_name", label: "System" }, { key: "errors", label: "Errors", isNumber: true, hasBar: true }]} />`}</section>
        ${rows.length > 1 && html`<section ...${marked(about, "card")}><h2 class="pad">Messages</h2><${DataTable} caption="Messages" rows=${rows} columns=${[{ key: "message", label: "Message" }, { key: "errors", label: "Errors", isNumber: true, hasBar: true }]} /></section>`}
      </div>
    </div>`;
}

/** What stands for rows until they are there. @param {{load: {value?: unknown, error?: unknown, reload: () => void}}} props */
function Waiting({ load: { value, error, reload } }) {
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  return value ? null : html`<${Skeleton} lines=${3} />`;
}

/** The last events of a session before an error; asked when it is opened. @param {{session: string, last: string}} props */
function Before({ session, last }) {
  const [isOpen, setOpen] = useState(false);
  const body = {
    query: {
      table: "events",
      selects: [COUNT],
      groupBy: ["time", "event_name", "path"],
      filters: [{ field: "session_id", operator: "eq", value: session }, { field: "time", operator: "lte", value: last }],
    },
    orderBy: [{ field: "time", direction: "desc" }],
    limit: 15,
  };
  const { value, error, reload } = useQuery(body, isOpen);
  return html`<details onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}><summary><bdi>${session}</bdi> <span class="faint">${ago(last)}</span></summary>
    ${error != null && html`<${Failure} error=${error} onRetry=${reload} />`}
    ${isOpen && !value && error == null && html`<${Skeleton} lines=${3} />`}
    <ol class="trail">${(value?.data ?? []).toReversed().map((row) => html`<li key=${JSON.stringify(row)}><span class="faint mono">${datetime(row["time"], timezone.value).slice(-8)}</span><b><bdi>${row["event_name"]}</bdi></b><bdi>${row["path"]}</bdi></li>`)}
      ${value && html`<li class="refusal"><span class="mono">${datetime(last, timezone.value).slice(-8)}</span><b>this error</b></li>`}</ol></details>`;
}

/** @param {CustomBody} body @param {boolean} [isWanted] */
function useQuery(body, isWanted = true) {
  const whole = { ...body, ...bounds.value, timezone: timezone.value };
  const id = page.value.website;
  return useLoad(isWanted ? `errors ${id} ${JSON.stringify(whole)}` : "", (signal) => custom(id, whole, signal));
}
