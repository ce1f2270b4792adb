/**
 * The overview's figures by the standard queries, all in one call. What these cannot answer, because
 * a filter has no meaning on one of their tables, is asked by custom queries; so is everything where
 * the service has no standard queries. Custom queries are limited to 30 a minute: only what is
 * looked at is asked for.
 */

import { addDays, comparedBounds } from "../state/dates.js";
import { applicableTables, BREAKDOWNS, breakdownQuery, SERIES_TABLES, summarySelects, TIME_COLUMNS } from "../state/standard_types.js";
import { ApiError, call } from "./client.js";
import { custom } from "./queries.js";

/** @typedef {import("./client.js").Row} Row */
/** @typedef {import("../state/filters.js").FilterItem} FilterItem */
/** @typedef {import("../state/dates.js").Bounds} Bounds */
/**
 * @typedef {object} OverviewRequest
 * @property {string} website
 * @property {Bounds} bounds
 * @property {string} timezone
 * @property {string} granularity
 * @property {"previous_period" | "previous_year" | "none"} compare
 * @property {FilterItem[]} filters
 */
/** @typedef {{summary: Row, timeseries: Row[], online: number | null}} Summary  rows have `previous` where they were compared */

const ROWS = 10;
const SHARED_MS = 5000;
let hasStandard = true;

/** Calls that several parts of the overview share. @type {Map<string, Promise<Record<string, any>>>} */
const shared = new Map();

/**
 * Totals and the chart. @param {OverviewRequest} request
 * @param {string} metric  what the chart shows @param {AbortSignal} signal @returns {Promise<Summary>}
 */
export async function summary(request, metric, signal) {
  const parts = await standard(request);
  if (parts?.["summary"]) return { summary: parts["summary"], timeseries: parts["timeseries"], online: parts["online"]?.visitors ?? null };
  const tables = [...applicableTables(request.filters)];
  const charted = tables.length === 1 ? String(tables[0]) : (SERIES_TABLES[metric] ?? "events");
  const [totals, timeseries] = await Promise.all([
    Promise.all(tables.map((table) => tableTotals(request, table, tables.length === 1, signal))),
    tables.length === 0 ? [] : tableSeries(request, charted, tables.length === 1, signal),
  ]);
  const merged = totals.reduce((all, one) => ({ now: { ...all.now, ...one.now }, before: { ...all.before, ...one.before } }), { now: {}, before: {} });
  const before = request.compare === "none" ? {} : { previous: rated(merged.before) };
  return { summary: { ...rated(merged.now), ...before }, timeseries, online: parts?.["online"]?.visitors ?? null };
}

/** The most frequent values of a dimension; null where a filter has no meaning. @param {OverviewRequest} request @param {string} type @param {AbortSignal} signal @returns {Promise<Row[] | null>} */
export async function breakdown(request, type, signal) {
  if (!applicableTables(request.filters).has(String(BREAKDOWNS[type]?.table))) return null;
  const parts = await standard(request);
  if (parts) return parts[type];
  const query = breakdownQuery(type, request.filters);
  return (await custom(request.website, { query, ...request.bounds, timezone: request.timezone, limit: ROWS }, signal)).data;
}

/** All parts that the filters allow, in one call that is shared; null where there is none. @param {OverviewRequest} request */
async function standard(request) {
  const tables = applicableTables(request.filters);
  const key = JSON.stringify(request);
  if (!hasStandard || tables.size === 0) return null;
  if (!shared.has(key)) {
    const types = Object.keys(BREAKDOWNS).filter((type) => tables.has(String(BREAKDOWNS[type]?.table)));
    if (tables.size === 2) types.unshift("summary", "timeseries");
    if (tables.has("events")) types.push("online");
    shared.set(key, ask(request, types));
    setTimeout(() => shared.delete(key), SHARED_MS);
  }
  try {
    return await /** @type {Promise<Record<string, any>>} */ (shared.get(key));
  } catch (error) {
    shared.delete(key);
    if (!(error instanceof ApiError && error.status === 404 && error.code === "NOT_FOUND")) throw error;
    hasStandard = false;
    return null;
  }
}

/** @param {OverviewRequest} request @param {string[]} types @returns {Promise<Record<string, any>>} */
async function ask({ website, filters, bounds, timezone, granularity, compare }, types) {
  const body = { types, filters, ...bounds, timezone, granularity, limit: ROWS, ...(compare !== "none" && { compare }) };
  return (await call("POST", "/v1/query/standard", { parameters: { website_id: website }, body })).data;
}

/**
 * Totals of a range and of that before it, in one query: each figure has the days as its own filter.
 * @param {OverviewRequest} request @param {string} table @param {boolean} isAlone @param {AbortSignal} signal
 */
async function tableTotals({ website, bounds, timezone, compare, filters }, table, isAlone, signal) {
  const compared = compare === "none" ? null : comparedBounds(bounds, compare);
  const ranges = compared ? { now: bounds, before: compared } : { now: bounds };
  const selects = Object.entries(ranges).flatMap(([name, range]) =>
    summarySelects(table, isAlone).map((select) => ({ ...select, alias: `${name} ${select.alias}`, filters: [...(select.filters ?? []), ...within(table, range)] })),
  );
  const whole = { startDate: compared?.startDate ?? bounds.startDate, endDate: bounds.endDate };
  const row = (await custom(website, { query: { table, selects, filters }, ...whole, timezone }, signal)).data[0] ?? {};
  const partOf = (/** @type {string} */ name) => Object.fromEntries(Object.entries(row).filter(([alias]) => alias.startsWith(`${name} `)).map(([alias, value]) => [alias.slice(name.length + 1), value]));
  return { now: partOf("now"), before: partOf("before") };
}

/** @param {string} table @param {Bounds} bounds @returns {FilterItem[]} */
function within(table, { startDate, endDate }) {
  const field = TIME_COLUMNS[table] ?? "time";
  return [{ field, operator: "gte", value: startDate }, { field, operator: "lt", value: addDays(endDate, 1) }];
}

/** @param {OverviewRequest} request @param {string} table @param {boolean} isAlone @param {AbortSignal} signal @returns {Promise<Row[]>} */
async function tableSeries({ website, bounds, timezone, granularity, compare, filters }, table, isAlone, signal) {
  const query = { table, selects: summarySelects(table, isAlone), filters };
  const compared = compare === "none" ? {} : { compare };
  const { data } = await custom(website, { query, ...bounds, timezone, granularity, fill: true, limit: 10_000, ...compared }, signal);
  return data.map(({ previous, ...row }) => ({ ...rated(row), ...("compare" in compared && { previous: previous ? rated(previous) : null }) }));
}

/** @param {Row} row */
function rated(row) {
  const { bounces, ...rest } = row;
  if (bounces === undefined) return rest;
  return { ...rest, bounceRate: rest["sessions"] ? bounces / rest["sessions"] : null };
}
