/**
 * The overview's figures: one call of the standard queries. What these cannot answer, because a
 * filter has no meaning on one of their tables, is asked of the other table by a custom query.
 */

import { comparedBounds } from "../state/dates.js";
import { applicableTables, BREAKDOWNS, breakdownQuery, SUMMARY_SELECTS } from "../state/standard_types.js";
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
/**
 * @typedef {object} Overview
 * @property {Row} summary  with `previous` where it was compared
 * @property {Row[]} timeseries
 * @property {Record<string, Row[] | null>} breakdowns  null where a filter has no meaning
 * @property {number | null} online
 */

const ROWS = 10;
let hasStandard = true;

/** @param {OverviewRequest} request @param {AbortSignal} signal @returns {Promise<Overview>} */
export async function overview(request, signal) {
  const tables = applicableTables(request.filters);
  const types = Object.keys(BREAKDOWNS).filter((type) => tables.has(String(BREAKDOWNS[type]?.table)));
  const [parts, series] = await Promise.all([
    standard(request, tables.size === 2 ? ["summary", "timeseries", ...types] : types, signal),
    tables.size === 2 ? null : oneTableSeries(request, [...tables], signal),
  ]);
  const breakdowns = Object.fromEntries(Object.keys(BREAKDOWNS).map((type) => [type, parts[type] ?? null]));
  return {
    summary: series?.summary ?? parts["summary"] ?? {},
    timeseries: series?.timeseries ?? parts["timeseries"] ?? [],
    breakdowns,
    online: parts["online"]?.visitors ?? null,
  };
}

/** @param {OverviewRequest} request @param {string[]} types @param {AbortSignal} signal @returns {Promise<Record<string, any>>} */
async function standard(request, types, signal) {
  if (types.length === 0) return {};
  if (hasStandard) {
    try {
      const online = applicableTables(request.filters).has("events") ? ["online"] : [];
      const body = {
        types: [...types, ...online],
        filters: request.filters,
        ...request.bounds,
        timezone: request.timezone,
        granularity: request.granularity,
        limit: ROWS,
        ...(request.compare !== "none" && types.includes("summary") && { compare: request.compare }),
      };
      return (await call("POST", "/v1/query/standard", { parameters: { website_id: request.website }, body, signal })).data;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404 && error.code === "NOT_FOUND")) throw error;
      hasStandard = false;
    }
  }
  return composed(request, types, signal);
}

/** The same answers from custom queries. @param {OverviewRequest} request @param {string[]} types @param {AbortSignal} signal */
async function composed(request, types, signal) {
  const breakdowns = types.filter((type) => type in BREAKDOWNS);
  const answers = await Promise.all(
    breakdowns.map((type) => {
      const query = breakdownQuery(type, request.filters);
      return custom(request.website, { query, ...request.bounds, timezone: request.timezone, limit: ROWS }, signal);
    }),
  );
  const parts = Object.fromEntries(breakdowns.map((type, index) => [type, answers[index]?.data ?? []]));
  if (!types.includes("summary")) return parts;
  return { ...parts, ...(await oneTableSeries(request, ["events", "sessions"], signal)) };
}

/** @param {OverviewRequest} request @param {string[]} tables @param {AbortSignal} signal */
async function oneTableSeries(request, tables, signal) {
  const ranges = request.compare === "none" ? [request.bounds] : [request.bounds, comparedBounds(request.bounds, request.compare)];
  const answers = await Promise.all(
    ranges.map((bounds) => Promise.all(tables.map((table) => tableSeries({ ...request, bounds }, table, tables.length === 1, signal)))),
  );
  const [current, previous] = answers.map((parts) => ({
    summary: rated(Object.assign({}, ...parts.map(({ summary }) => summary))),
    timeseries: (parts[0]?.timeseries ?? []).map((row, index) => rated(Object.assign({}, row, ...parts.slice(1).map(({ timeseries }) => timeseries[index])))),
  }));
  const summary = { ...current?.summary, ...(previous && { previous: previous.summary }) };
  const timeseries = (current?.timeseries ?? []).map((row, index) => ({ ...row, ...(previous && { previous: previous.timeseries[index] ?? null }) }));
  return { summary, timeseries };
}

/** @param {OverviewRequest} request @param {string} table @param {boolean} alone @param {AbortSignal} signal */
async function tableSeries({ website, bounds, timezone, granularity, filters }, table, alone, signal) {
  const selects = alone ? ONE_TABLE_SELECTS[table] : SUMMARY_SELECTS[/** @type {"events" | "sessions"} */ (table)];
  const query = { table, selects: selects ?? [], filters };
  const [total, series] = await Promise.all([
    custom(website, { query, ...bounds, timezone }, signal),
    custom(website, { query, ...bounds, timezone, granularity, fill: true, limit: 10_000 }, signal),
  ]);
  return { summary: total.data[0] ?? {}, timeseries: series.data };
}

/** As much of a summary as one table can tell. @type {Record<string, import("./queries.js").Select[]>} */
const ONE_TABLE_SELECTS = {
  events: [...SUMMARY_SELECTS.events, { field: "session_id", aggregate: "uniq", alias: "sessions" }],
  sessions: [
    ...SUMMARY_SELECTS.sessions,
    { field: "anonymous_id", aggregate: "uniq", alias: "visitors" },
    { field: "page_views", aggregate: "sum", alias: "pageViews" },
    { field: "event_count", aggregate: "sum", alias: "events" },
  ],
};

/** @param {Row} row */
function rated(row) {
  const { bounces, ...rest } = row;
  if (bounces === undefined) return rest;
  return { ...rest, bounceRate: rest["sessions"] ? bounces / rest["sessions"] : null };
}
