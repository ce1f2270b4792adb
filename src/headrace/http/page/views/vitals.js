/** Web vitals at the 75th percentile, as the published thresholds ask for. */

import { bounds, granularity, navigate, page, timezone, viewUrl } from "../app_state.js";
import { custom } from "../api/queries.js";
import { ChartOrTable } from "../charts/chart_or_table.js";
import { DataTable } from "../charts/data_table.js";
import { limitsOver } from "../charts/limits.js";
import { FilterBar } from "../controls/filter_bar.js";
import { useLoad } from "../controls/load.js";
import { Empty, Failure, marked, Skeleton } from "../controls/messages.js";
import { RangePicker } from "../controls/range_picker.js";
import { TabPanel, Tabs } from "../controls/tabs.js";
import { html } from "../html.js";
import { openBucket } from "../state/dates.js";
import { toggled } from "../state/filters.js";
import { bucketName, bucketTime, counted, percent, valueName } from "../state/format.js";
import { exactVital, ordered, ratingOf, RATING_WORDS, VITALS, vitalValue, worstFirst } from "../state/analyses/vitals.js";
import { useId, useState } from "../vendor/hooks.js";

/** @typedef {import("../state/query_body.js").CustomBody} CustomBody */
/** @typedef {Record<string, any>} Row */

const FIELD = "metric_value";
const P75 = { field: FIELD, aggregate: "p75", alias: "p75" };
const SAMPLES = { field: "*", aggregate: "count", alias: "samples" };
const SHARES = ["good", "needs_improvement", "poor"].map((rating) => ({ field: FIELD, aggregate: `${rating}_share`, alias: rating }));
const COLUMNS = ["path", "device_type", "country", "browser_name", "os_name"];
const DIMENSIONS = { path: "Pages", device_type: "Devices", country: "Countries", browser_name: "Browsers", os_name: "Systems" };

export function Vitals() {
  const metric = Object.hasOwn(VITALS, page.value.metric) ? page.value.metric : "LCP";
  const summary = useQuery({ query: { table: "performance", selects: [P75, SAMPLES, ...SHARES], groupBy: ["metric_name"], filters: page.value.filters } });
  const rows = new Map((summary.value?.data ?? []).map((row) => [row["metric_name"], row]));
  return html`
    <div class="toolbar"><${RangePicker} hasCompare=${false} /><${FilterBar} columns=${COLUMNS} table="performance" /></div>
    ${summary.error != null && html`<${Failure} error=${summary.error} onRetry=${summary.reload} />`}
    ${summary.value && rows.size === 0
      ? html`<section class="card">${page.value.filters.length ? html`<${Empty} title="No web vitals with these filters in this range">Remove a filter, or choose a longer range.<//>` : html`<${Empty} title="No web vitals in this range">The tracker sends them from the browsers of visitors. <a href=${viewUrl("setup")}>Setup</a> has the line for your pages.<//>`}</section>`
      : (summary.value || summary.error == null) && html`<div ...${marked(summary, "vitals")}>${Object.keys(VITALS).map((name) => html`<${VitalCard} key=${name} metric=${name} row=${rows.get(name)} isLoading=${!summary.value} isChosen=${name === metric} />`)}</div>
        ${rows.has(metric) && html`<${Details} key=${metric} metric=${metric} />`}`}`;
}

/** @param {{metric: string, row: Row | undefined, isLoading: boolean, isChosen: boolean}} props */
function VitalCard({ metric, row, isLoading, isChosen }) {
  const rating = ratingOf(metric, row?.["p75"]);
  return html`<button type="button" class="card vital" aria-pressed=${isChosen} onClick=${() => navigate({ metric: metric === "LCP" ? "" : metric })}>
    <span class="name"><b>${metric}</b><span>${VITALS[metric]?.name}</span></span>
    ${isLoading ? html`<${Skeleton} lines=${2} />` : !row ? html`<span class="faint">No samples</span>` : html`
      <span class="value" title=${exactVital(metric, row["p75"])}>${vitalValue(metric, row["p75"])}</span>${rating && html`<em class=${`rating ${rating}`}>${RATING_WORDS[rating]}</em>`}
      ${rating && html`<${Shares} row=${row} />`}
      <small class="faint">p75 of ${counted(row["samples"], "sample", "samples")}</small>`}
  </button>`;
}

/** @param {{row: Row}} props */
function Shares({ row }) {
  const parts = [["good", row["good"]], ["fair", row["needs_improvement"]], ["poor", row["poor"]]];
  return html`<span class="shares" role="img" aria-label=${parts.map(([rating, share]) => `${RATING_WORDS[/** @type {"good"} */ (rating)]} ${percent(share)}`).join(", ")}>
    ${parts.map(([rating, share]) => html`<i key=${rating} class=${rating} style=${{ width: `${100 * (share ?? 0)}%` }} title=${`${RATING_WORDS[/** @type {"good"} */ (rating)]}: ${percent(share)}`}></i>`)}</span>`;
}

/** @param {{metric: string}} props */
function Details({ metric }) {
  const id = useId();
  const [dimension, setDimension] = useState("path");
  const [order, setOrder] = useState(() => /** @type {import("../charts/data_table.js").Order} */ (worstFirst(metric)));
  const filters = [{ field: "metric_name", operator: "eq", value: metric }, ...page.value.filters];
  const series = useQuery({ query: { table: "performance", selects: [P75, SAMPLES], filters }, granularity: granularity.value, fill: true, limit: 10_000 });
  const worst = useQuery({ query: { table: "performance", selects: [P75, SAMPLES, ...SHARES], groupBy: [dimension], filters }, orderBy: [{ field: "samples", direction: "desc" }], limit: 100 });
  const rows = series.value?.data ?? [];
  const ranked = ordered(worst.value?.data ?? [], order);
  const rate = (/** @type {number} */ value) => {
    const rating = ratingOf(metric, value);
    return html`<span class="rated">${rating && html`<em class=${`rating ${rating}`}>${RATING_WORDS[rating]}</em>`}${" "}<span title=${exactVital(metric, value)}>${vitalValue(metric, value)}</span></span>`;
  };
  const name = (/** @type {any} */ value, /** @type {Row} */ row) => html`<button type="button" class="link" title=${valueName(dimension, value)} onClick=${() => navigate({ filters: toggled(page.value.filters, { field: dimension, operator: "eq", value }) })}>${valueName(dimension, value)}</button>${ratingOf(metric, row["p75"]) && html`<${Shares} row=${row} />`}`;
  const share = { isNumber: true, isMinor: true, isSortable: true, format: (/** @type {number | null} */ value) => percent(value) };
  return html`
    <section ...${marked(series, "card lead")}>
      ${series.error != null && html`<${Failure} error=${series.error} onRetry=${series.reload} />`}
      ${rows.length > 0 ? html`<${ChartOrTable} caption=${`${metric} at the 75th percentile over time`} head=${html`<h2>${metric} at p75, over time</h2>`} rows=${rows}
        columns=${[{ key: "date", label: "Date", format: (/** @type {string} */ date) => bucketName(date, granularity.value) }, { key: "p75", label: "p75", isNumber: true, format: rate }, { key: "samples", label: "Samples", isNumber: true, hasBar: true }]}
        chart=${{ height: 220, isArea: false, onDraw: limitsOver(limitsOf(metric)), open: openBucket(rows.map((row) => row["date"]), granularity.value, timezone.value), times: rows.map((row) => bucketTime(row["date"])), series: [{ label: "p75", values: rows.map((row) => row["p75"]) }],
          names: (/** @type {number} */ index) => `${bucketName(rows[index]?.["date"], granularity.value)} · ${counted(rows[index]?.["samples"], "sample", "samples")}`, format: (/** @type {number} */ value) => vitalValue(metric, value), axisFormat: (/** @type {number} */ value) => (value ? vitalValue(metric, value) : "0") }} />` : html`<div class="chart-space">${series.error == null && html`<${Skeleton} lines=${5} />`}</div>`}
    </section>
    <section class="card answer"><header><${Tabs} id=${id} label="Lists" tabs=${Object.entries(DIMENSIONS)} value=${dimension} onChoose=${setDimension} />
      ${worst.value?.meta["truncated"] && html`<small class="faint">The 100 with most samples</small>`}</header>
      <${TabPanel} id=${id} value=${dimension}>${worst.error != null ? html`<${Failure} error=${worst.error} onRetry=${worst.reload} />` : worst.isLoading ? html`<${Skeleton} />` : html`<${DataTable} caption=${`${metric} by ${DIMENSIONS[/** @type {"path"} */ (dimension)]}`} rows=${ranked} order=${order} onOrder=${setOrder}
        columns=${[{ key: dimension, label: DIMENSIONS[/** @type {"path"} */ (dimension)], format: name }, { key: "p75", label: "p75", isNumber: true, isSortable: true, format: rate }, { key: "good", label: "Good", ...share }, { key: "needs_improvement", label: "Needs improvement", ...share }, { key: "poor", label: "Poor", ...share }, { key: "samples", label: "Samples", isNumber: true, isSortable: true, hasBar: true }]} />`}<//>
    </section>`;
}

/** Where good ends and poor begins. @param {string} metric @returns {import("../charts/limits.js").Limit[]} */
function limitsOf(metric) {
  const vital = VITALS[metric];
  if (!vital || vital.good === Infinity) return [];
  return [
    { value: vital.good, label: `good up to ${vitalValue(metric, vital.good)}`, color: "--good" },
    { value: vital.poor, label: `poor above ${vitalValue(metric, vital.poor)}`, color: "--bad" },
  ];
}

/** A custom query over the range of the page. @param {CustomBody} body */
function useQuery(body) {
  const whole = { ...body, ...bounds.value, timezone: timezone.value };
  const id = page.value.website;
  return useLoad(`vitals ${id} ${JSON.stringify(whole)}`, (signal) => custom(id, whole, signal));
}
