/** How many of those who came first in a week come back in later ones. */

import { bounds, navigate, page, timezone } from "../app_state.js";
import { retention } from "../api/queries.js";
import { EVENT_COLUMNS, FilterBar } from "../controls/filter_bar.js";
import { AddFilter, FilterWords } from "../controls/filter_words.js";
import { useLoad } from "../controls/load.js";
import { Empty, Failure, marked, Skeleton } from "../controls/messages.js";
import { RangePicker } from "../controls/range_picker.js";
import { Choice } from "../controls/word.js";
import { useSchema } from "../controls/schema.js";
import { html } from "../html.js";
import { hasFilters } from "../state/filters.js";
import { bucketName, exactNumber, percent, shortBucketName, shortNumber } from "../state/format.js";
import { parseJson } from "../state/json.js";
import { withAt, withoutNulls } from "../state/query_body.js";
import { begunPeriods, isOpen, sizeOf, together } from "../state/analyses/cohorts.js";
import { useEffect, useState } from "../vendor/hooks.js";

/** @typedef {import("../state/filters.js").FilterItem} FilterItem */
/** @typedef {{first: {filters: FilterItem[]}, return: {filters: FilterItem[]}, granularity: string, periods: number, by: string}} Wanted */

/** @type {Wanted} */
const FIRST = { first: { filters: [] }, return: { filters: [] }, granularity: "weekly", periods: 9, by: "anonymous_id" };
const BUCKETS = { daily: "day", weekly: "week", monthly: "month" };
const BY = { anonymous_id: "visitors", session_id: "sessions", profile_id: "profiles" };
const NARROW = matchMedia("(max-width: 34rem)");
const MEDIUM = matchMedia("(max-width: 48rem)");
const PERIODS = Object.fromEntries([4, 7, 9, 13, 31].map((count) => [String(count), `${count}`]));

export function Retention() {
  const wanted = wantedOf(page.value.query);
  const filtered = ({ filters = /** @type {FilterItem[]} */ ([]) }) => ({ filters: [...filters, ...page.value.filters] });
  const body = { ...wanted, first: filtered(wanted.first), return: filtered(wanted.return), ...bounds.value, timezone: timezone.value };
  const id = page.value.website;
  const known = useSchema();
  const { value, error, isLoading, reload } = useLoad(`retention ${id} ${JSON.stringify(body)}`, async (signal) => ({ wanted, rows: (await retention(id, body, signal)).data }));
  const columns = known.value?.tables.find(({ name }) => name === "events")?.columns.filter(({ filterable }) => filterable) ?? [];
  const change = (/** @type {Wanted} */ changed) => navigate({ query: JSON.stringify(changed) });
  const set = (/** @type {(string | number)[]} */ path, /** @type {unknown} */ changed) => change({ ...FIRST, ...withAt(wanted, path, changed) });
  const shared = { columns, set };
  return html`
    <div class="toolbar"><${RangePicker} hasCompare=${false} hasGranularity=${false} /><${FilterBar} columns=${EVENT_COLUMNS} /></div>
    <section class="card query"><div class="sentence">
      <span>Of</span><${Choice} title="Who" value=${wanted.by} options=${BY} onChoose=${(/** @type {string} */ by) => change({ ...wanted, by })} />
      <span>who first had</span><${Events} side="first" filters=${wanted.first.filters ?? []} ...${shared} />
      <span>in a</span><${Choice} title="Bucket" value=${wanted.granularity} options=${BUCKETS} onChoose=${(/** @type {string} */ granularity) => change({ ...wanted, granularity })} /><span>show who had</span>
      <${Events} side="return" filters=${wanted.return.filters ?? []} ...${shared} />
      <span>in that and later ones,</span><${Choice} title="Periods" value=${String(wanted.periods)} options=${PERIODS} onChoose=${(/** @type {string} */ periods) => change({ ...wanted, periods: Number(periods) })} /><span>in all</span>
    </div></section>
    ${error != null && html`<${Failure} error=${error} onRetry=${reload} />`}
    ${(value || error == null) && html`<section ...${marked({ isLoading }, "card answer")}>
      ${!value ? html`<${Skeleton} />` : value.rows.length === 0 ? html`<${Empty} title="Nobody began in this range">Choose a longer one, or other events to begin with.<//>` : html`<${Cohorts} rows=${value.rows} granularity=${value.wanted.granularity} />`}
    </section>`}`;
}

/** @param {{side: string, filters: FilterItem[], columns: object[], set: (path: (string | number)[], value: unknown) => void}} props */
function Events({ side, filters, columns, set }) {
  const shared = { table: "events", columns, set, at: () => ({}), form: "cohorts" };
  return html`${filters.length === 0 ? html`<b>any event</b>` : html`<span>events where</span>`}${filters.map((item, index) => html`${index > 0 && html`<span key=${`and ${index}`}>and</span>`}
    <${FilterWords} key=${`${index} ${JSON.stringify(item)}`} item=${item} path=${[side, "filters", index]} ...${shared} />`)}
    <${AddFilter} path=${[side, "filters", filters.length]} label=${filters.length ? "+" : "+ where"} ...${shared} />`;
}

/** @param {{rows: Record<string, any>[], granularity: string}} props */
function Cohorts({ rows, granularity }) {
  const begun = begunPeriods(rows);
  const unit = BUCKETS[/** @type {"daily"} */ (granularity)] ?? "period";
  const { hasShortNames, fitting } = useWindow();
  const [chosen, setFirst] = useState(0);
  const first = Math.max(0, Math.min(chosen, begun - fitting));
  const periods = Array.from({ length: Math.min(fitting, begun - first) }, (_, index) => first + index);
  const name = (/** @type {string} */ date) => (hasShortNames ? shortBucketName : bucketName)(date, granularity);
  return html`${periods.length < begun && html`<p class="turn"><button type="button" aria-label="Earlier periods" disabled=${first === 0} onClick=${() => setFirst(first - fitting)}>‹</button>
      <span role="status">${unit === "day" ? "Days" : unit === "week" ? "Weeks" : "Months"} <b>+${first}</b> to <b>+${first + periods.length - 1}</b> of +${begun - 1}</span>
      <button type="button" aria-label="Later periods" disabled=${first + periods.length === begun} onClick=${() => setFirst(first + fitting)}>›</button></p>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Cohorts"><table class="data cohorts"><caption class="hidden">Share of each cohort that came back</caption>
    <thead><tr><th scope="col">First in</th><th scope="col" class="number">Size</th>${periods.map((index) => html`<th key=${index} scope="col" class="number">${index === 0 ? `Same ${unit}` : `+${index}`}</th>`)}</tr></thead>
    <tbody>${rows.length > 1 && html`<tr class="all"><th scope="row">All</th><td class="number" title=${exactNumber(sizeOf(rows))}>${shortNumber(sizeOf(rows))}</td>${periods.map((index) => html`<${Share} key=${index} ...${together(rows, index)} />`)}</tr>`}
    ${rows.map((row) => html`<tr key=${row["date"]}><th scope="row" title=${bucketName(row["date"], granularity)}>${name(row["date"])}</th><td class="number" title=${exactNumber(row["size"])}>${shortNumber(row["size"])}</td>
      ${periods.map((index) => html`<${Share} key=${index} count=${row["returned"][index]} size=${row["size"]} isOpen=${isOpen(row["returned"], index)} />`)}</tr>`)}</tbody></table></div>`;
}

/** Whether cohorts have short names, and how many periods fit the window. @returns {{hasShortNames: boolean, fitting: number}} */
function useWindow() {
  const read = () => ({ hasShortNames: MEDIUM.matches, fitting: NARROW.matches ? 4 : MEDIUM.matches ? 7 : Infinity });
  const [found, setFound] = useState(read);
  useEffect(() => {
    const onChange = () => setFound(read());
    for (const query of [NARROW, MEDIUM]) query.addEventListener("change", onChange);
    return () => {
      for (const query of [NARROW, MEDIUM]) query.removeEventListener("change", onChange);
    };
  }, []);
  return found;
}

/** A cell is as dark as the root of its share: few come back, and those shares could not be told from each other beside the first. @param {{count: number | null, size: number, isOpen?: boolean}} props */
function Share({ count, size, isOpen = false }) {
  const title = count == null ? "Not yet" : `${exactNumber(count)} of ${exactNumber(size)}${isOpen ? " so far" : ""}`;
  return html`<td class=${`number heat ${isOpen ? "open" : ""}`} style=${{ "--share": count ? Math.sqrt(count / size) : 0 }} title=${title}>${count == null ? "" : percent(count / size)}</td>`;
}

/** @param {string} text @returns {Wanted} */
function wantedOf(text) {
  try {
    const found = parseJson(text);
    const wanted = { ...FIRST, ...withoutNulls(found) };
    return hasFilters(wanted.first) && hasFilters(wanted.return) ? wanted : FIRST;
  } catch {
    return FIRST;
  }
}
