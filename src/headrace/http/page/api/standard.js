/**
 * The overview by the standard queries: one call for its totals and chart, one for all its cards.
 * Where a filter has no meaning on one of the two tables that totals are made of, a custom query
 * tells as much of them as the other table can.
 */

import { applicableTables, BREAKDOWNS, summarySelects } from "../state/standard_types.js";
import { call } from "./client.js";
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

/** Calls that several cards of the overview share. @type {Map<string, Promise<Record<string, Row[]>>>} */
const shared = new Map();

/** Totals and the chart. @param {OverviewRequest} request @param {AbortSignal} signal @returns {Promise<Summary>} */
export async function summary(request, signal) {
  const { granularity, compare } = request;
  const options = { granularity, ...(compare !== "none" && { compare }) };
  const tables = [...applicableTables(request.filters)];
  if (tables.length === 2) {
    const parts = await standard(request, ["summary", "timeseries", "online"], options, signal);
    return { summary: parts["summary"], timeseries: parts["timeseries"], online: parts["online"].visitors };
  }
  const [figures, parts] = await Promise.all([
    tables[0] ? ofTable(request, tables[0], options, signal) : { summary: {}, timeseries: [] },
    tables[0] === "events" ? standard(request, ["online"], {}, signal) : null,
  ]);
  return { ...figures, online: parts?.["online"].visitors ?? null };
}

/** The most frequent values of a dimension; null where a filter has no meaning. @param {OverviewRequest} request @param {string} type @returns {Promise<Row[] | null>} */
export async function breakdown(request, type) {
  const tables = applicableTables(request.filters);
  if (!tables.has(String(BREAKDOWNS[type]?.table))) return null;
  const { granularity: _, compare: __, ...asked } = request;
  const key = JSON.stringify(asked);
  if (!shared.has(key)) {
    const types = Object.keys(BREAKDOWNS).filter((one) => tables.has(String(BREAKDOWNS[one]?.table)));
    shared.set(key, standard(request, types, { limit: ROWS }));
    setTimeout(() => shared.delete(key), SHARED_MS);
  }
  try {
    return (await shared.get(key))?.[type] ?? null;
  } catch (error) {
    shared.delete(key);
    throw error;
  }
}

/** Forget what the last breakdowns were, when events have come since. */
export function forgetBreakdowns() {
  shared.clear();
}

/** @param {OverviewRequest} request @param {string[]} types @param {object} options @param {AbortSignal} [signal] @returns {Promise<Record<string, any>>} */
async function standard({ website, filters, bounds, timezone }, types, options, signal) {
  const body = { types, filters, ...bounds, timezone, ...options };
  return (await call("POST", "/v1/query/standard", { parameters: { website_id: website }, body, signal })).data;
}

/** Totals and the chart of one table. @param {OverviewRequest} request @param {string} table @param {object} options @param {AbortSignal} signal */
async function ofTable({ website, bounds, timezone, filters }, table, options, signal) {
  const query = { table, selects: summarySelects(table), filters };
  const { data, totals } = await custom(website, { query, ...bounds, timezone, ...options, fill: true, totals: true, limit: 10_000 }, signal);
  return { summary: rated(totals ?? {}), timeseries: data.map(rated) };
}

/** @param {Row} row @returns {Row} */
function rated({ bounces, previous, ...row }) {
  const rate = bounces === undefined ? {} : { bounceRate: row["sessions"] ? bounces / row["sessions"] : null };
  return { ...row, ...rate, ...(previous !== undefined && { previous: previous && rated(previous) }) };
}
