/** The overview of a website: one request, beside the range before. */

import { amend, bounds, compare as compared, granularity, navigate, page, timezone, urlWith } from "../app_state.js";
import { rowSpan } from "../api/queries.js";
import { forgetBreakdowns, summary } from "../api/standard.js";
import { ChartOrTable } from "../charts/chart_or_table.js";
import { Breakdown } from "../controls/breakdown.js";
import { Figure } from "../controls/figure.js";
import { FilterBar } from "../controls/filter_bar.js";
import { forget, useLoad } from "../controls/load.js";
import { Failure, marked, NotSent, Skeleton } from "../controls/messages.js";
import { RangePicker } from "../controls/range_picker.js";
import { html } from "../html.js";
import { addDays, hasBegun, openBucket, todayIn } from "../state/dates.js";
import { beforeFirst, fittingRange, mayBeginLater, sinceFirst } from "../state/first_days.js";
import { bucketName, bucketTime, countryName, datetime, duration, exactNumber, NOTHING, percent, referrerName, shortNumber } from "../state/format.js";
import { DEFAULT_STATE } from "../state/page_state.js";
import { breakdownQuery } from "../state/standard_types.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {{name: string, shown: (value: any) => string, exact: (value: any) => string, isBetterLow?: boolean}} Metric */

/** @type {Record<string, Metric>} */
const METRICS = {
  visitors: { name: "Visitors", shown: shortNumber, exact: exactNumber },
  pageViews: { name: "Page views", shown: shortNumber, exact: exactNumber },
  sessions: { name: "Sessions", shown: shortNumber, exact: exactNumber },
  bounceRate: { name: "Bounce rate", shown: percent, exact: (value) => (value == null ? NOTHING : `${exactNumber(value * 100)} %`), isBetterLow: true },
  medianDuration: { name: "Median session", shown: duration, exact: (value) => (value == null ? NOTHING : `${exactNumber(value)} s`) },
};

const CARDS = [
  [
    { type: "pages", name: "Pages", columns: ["path"], figure: "views", unit: "Views" },
    { type: "entry_pages", name: "Entry", columns: ["entry_path"], figure: "sessions", unit: "Sessions" },
    { type: "exit_pages", name: "Exit", columns: ["exit_path"], figure: "sessions", unit: "Sessions" },
  ],
  [{ type: "countries", name: "Countries", columns: ["country"], figure: "visitors", unit: "Visitors", words: countryName }],
  [{ type: "referrers", name: "Referrers", columns: ["referrer"], figure: "sessions", unit: "Sessions", words: referrerName }],
  [{ type: "campaigns", name: "Campaigns", columns: ["utm_source", "utm_medium", "utm_campaign"], figure: "sessions", unit: "Sessions" }],
  [
    { type: "browsers", name: "Browsers", columns: ["browser_name"], figure: "visitors", unit: "Visitors" },
    { type: "systems", name: "Systems", columns: ["os_name"], figure: "visitors", unit: "Visitors" },
    { type: "devices", name: "Devices", columns: ["device_type"], figure: "visitors", unit: "Visitors" },
  ],
  [{ type: "events", name: "Events", columns: ["event_name"], figure: "events", unit: "Events" }],
];

export function Overview() {
  const { website: id, filters } = page.value;
  const compare = compared.value;
  const request = { website: id, bounds: bounds.value, timezone: timezone.value, granularity: granularity.value, compare, filters };
  const key = JSON.stringify(request);
  const { value: loaded, error, isLoading, reload } = useLoad(`overview ${key}`, (signal) => summary(request, signal));
  const { first, isSettled } = useFirstEvent(id, loaded, isLoading);
  const lacking = first === "" ? "none" : beforeFirst(bounds.value, compare, dayOf(first));
  const value = !isSettled ? undefined : loaded && lacking !== "none" ? sinceFirst(loaded) : loaded;
  const isNothing = value && isEmpty(value.summary, filters);
  const missing = lacking === "none" ? "" : `${lacking === "all" ? "Nothing" : "No whole range"} to compare with: no events before ${datetime(first, timezone.value)}`;
  const afresh = () => {
    forgetBreakdowns();
    forget(); // the breakdowns without the first event
    reload();
  };
  const totals = { ...value?.summary, views: value?.summary["pageViews"] };
  return html`
    <div class="toolbar"><${RangePicker} hasCompare=${!isNothing} hasGranularity=${!isNothing} /><${FilterBar} /></div>
    ${error != null && html`<${Failure} error=${error} onRetry=${reload} />`}
    ${isNothing ? html`<${Nothing} key=${id} onFirst=${afresh} />` : (value || error == null) && html`
      <section ...${marked({ isLoading }, "card lead")}>
        <${Figures} summary=${value?.summary} missing=${missing} />
        <${Chart} rows=${value?.timeseries} missing=${missing} />
      </section>
      <div class="cards">${CARDS.map((tabs) => html`<${Breakdown} key=${tabs[0]?.type} request=${request} totals=${totals}
        tabs=${tabs.map((tab) => ({ ...tab, moreUrl: exploreUrl(tab.type) }))} />`)}</div>`}
    ${value?.online != null && html`<${Online} count=${value.online} />`}`;
}

/**
 * The time of the first event, "" where it is surely before all that is shown; else a range that nobody has
 * chosen becomes one that fits. Until `isSettled`, the figures are not those to be shown.
 * @param {string} id @param {import("../api/standard.js").Summary | undefined} figures @param {boolean} isLoading
 */
function useFirstEvent(id, figures, isLoading) {
  const isQuiet = figures !== undefined && !isEmpty(figures.summary, page.value.filters) && mayBeginLater(figures);
  const { value, error, isLoading: isUnknown } = useLoad(isQuiet ? `event span ${id}` : "", (signal) => rowSpan(id, signal));
  const isChanging = useRef(false);
  const first = isQuiet && !isUnknown && error == null ? (value?.first ?? "") : "";
  const { range } = page.value;
  const fitting = first !== "" && "isDefault" in range ? fittingRange(dayOf(first), todayIn(timezone.value)) : null;
  useEffect(() => {
    if (!fitting) return;
    isChanging.current = true;
    amend({ range: fitting });
  }, [fitting?.last]);
  if (!isLoading) isChanging.current = false;
  return { first, isSettled: !isUnknown && !fitting && !isChanging.current };
}

/** @param {string} time */
function dayOf(time) {
  return todayIn(timezone.value, Date.parse(time));
}

/** Without an event in the range: how the first one gets there, or where the last ones are. @param {{onFirst: () => void}} props */
function Nothing({ onFirst }) {
  const id = page.value.website;
  const { value, error } = useLoad(`event span ${id}`, (signal) => rowSpan(id, signal));
  const [steps, setSteps] = useState(/** @type {{Steps: any} | null} */ (null));
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    import("./setup.js").then(({ FirstSteps }) => setSteps({ Steps: FirstSteps }), () => setMissing(true));
  }, []);
  if (!value && error == null) return html`<section class="card"><${Skeleton} lines=${2} /></section>`;
  if (value?.last !== "") {
    const to = value ? dayOf(value.last) : todayIn(timezone.value);
    return html`<section class="card welcome"><h2>No events in these days</h2>
      <p class="soft">${value && `The last one was on ${datetime(value.last, timezone.value)}. `}<a href=${urlWith({ range: { from: addDays(to, -29), to } })}>Show the 30 days up to then</a></p></section>`;
  }
  return html`<section class="card welcome"><h2>No events yet</h2>
      <p class="soft">The chart appears by itself with the first one. Two steps lead there:</p></section>
    ${isMissing && html`<${NotSent} />`}${steps && html`<${steps.Steps} onFirst=${onFirst} />`}`;
}

/** Whether there is nothing to show, and no filter that hides it. @param {Row} totals @param {object[]} filters */
function isEmpty(totals, filters) {
  return filters.length === 0 && !totals["visitors"] && !totals["pageViews"] && !totals["sessions"];
}

function metricName() {
  return Object.hasOwn(METRICS, page.value.metric) ? page.value.metric : "visitors";
}

/** @param {{summary: Row | undefined, missing: string}} props */
function Figures({ summary, missing }) {
  return html`<div class="figures">${Object.entries(METRICS).map(([key, metric]) => {
    const value = summary?.[key];
    const previous = summary?.["previous"]?.[key];
    return html`<${Figure} key=${key} name=${metric.name} value=${value} previous=${summary?.["previous"] ? (previous ?? null) : undefined}
      shown=${summary ? metric.shown(value) : " "} exact=${metric.exact(value)} shownPrevious=${metric.shown(previous)} exactPrevious=${metric.exact(previous)} isBetterLow=${metric.isBetterLow} missing=${summary ? missing : ""}
      isChosen=${key === metricName()} onChoose=${() => navigate({ metric: key === "visitors" ? "" : key })} />`;
  })}</div>`;
}

/** @param {{rows: Row[] | undefined, missing: string}} props */
function Chart({ rows, missing }) {
  if (!rows) return html`<div class="chart-space"><${Skeleton} lines=${5} /></div>`;
  const key = metricName();
  const metric = /** @type {Metric} */ (METRICS[key]);
  const bucket = granularity.value;
  const hasPrevious = rows.some((row) => row["previous"]);
  const current = { label: metric.name, values: rows.map((row) => (hasBegun(row["date"], timezone.value) ? (row[key] ?? null) : null)) };
  const previous = { label: "Before", values: rows.map((row) => row["previous"]?.[key] ?? null), isPrevious: true };
  const series = [...(hasPrevious ? [previous] : []), current];
  const number = { isNumber: true, format: metric.exact };
  return html`<${ChartOrTable} caption=${`${metric.name} over time`}
    head=${html`<p class="legend"><span><i class="line"></i>${metric.name}</span>${hasPrevious && html`<span><i class="line dashed"></i>Before</span>`}${missing && html`<span>${missing}</span>`}</p>`}
    rows=${rows.map((row) => ({ date: row["date"], now: row[key], before: row["previous"]?.[key] }))}
    columns=${[{ key: "date", label: "Date", format: (/** @type {string} */ date) => bucketName(date, bucket) }, { key: "now", label: metric.name, hasBar: true, ...number }, ...(hasPrevious ? [{ key: "before", label: "Before", ...number }] : [])]}
    chart=${{ times: rows.map((row) => bucketTime(row["date"])), series, open: openBucket(rows.map((row) => row["date"]), bucket, timezone.value), max: key === "bounceRate" ? 1 : undefined, isTime: key === "medianDuration", names: (/** @type {number} */ index) => bucketName(rows[index]?.["date"] ?? "", bucket), format: metric.exact, axisFormat: metric.shown }} />`;
}

/** @param {{count: number}} props */
function Online({ count }) {
  return html`<p class="online" title="Visitors with an event in the last five minutes"><i class=${count ? "pulse" : ""}></i><b>${exactNumber(count)}</b> online now</p>`;
}

/** The rows of a breakdown, all of them, as a query to explore. @param {string} type */
function exploreUrl(type) {
  const body = { query: breakdownQuery(type, page.value.filters), ...bounds.value, timezone: timezone.value, limit: 1000 };
  return urlWith({ view: "explore", item: "", query: JSON.stringify(body), filters: [], metric: "", granularity: "", compare: "previous_period", range: DEFAULT_STATE.range });
}
