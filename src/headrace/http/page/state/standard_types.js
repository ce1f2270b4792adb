/** The standard queries, each as the custom query that it equals. Pure. */

import { filteredFields } from "./filters.js";

/** @typedef {import("./filters.js").FilterItem} FilterItem */
/** @typedef {{field: string, aggregate: string, alias?: string, filters?: FilterItem[]}} Select */
/** @typedef {{table: string, groupBy: string[], selects: Select[], filters: FilterItem[]}} Definition */

/** Matches page views by all names that trackers give them. */
export const PAGE_VIEW = { field: "event_name", operator: "in", value: ["screen_view", "pageview", "page_view"] };
const VISITORS = { field: "anonymous_id", aggregate: "uniq", alias: "visitors" };
const BOUNCE = { field: "is_bounce", operator: "eq", value: true };

/** @param {string} field @returns {FilterItem} */
const isSet = (field) => ({ field, operator: "is_set" });
/** @param {string} alias @param {FilterItem[]} [filters] @returns {Select} */
const count = (alias, filters) => ({ field: "*", aggregate: "count", alias, ...(filters && { filters }) });
/** @param {string} column @returns {Definition} */
const ofEvents = (column) => ({
  table: "events",
  groupBy: [column],
  selects: [VISITORS, count("events")],
  filters: [isSet(column)],
});
/** @param {string[]} columns @returns {Definition} */
const ofSessions = (...columns) => ({
  table: "sessions",
  groupBy: columns,
  selects: [count("sessions"), VISITORS, count("bounces", [BOUNCE])],
  filters: columns.length === 1 ? columns.map(isSet) : [{ or: columns.map(isSet) }],
});

/** As much of a summary as a table can tell on its own. @type {Record<string, Select[]>} */
const SUMMARY_SELECTS = {
  events: [VISITORS, { field: "session_id", aggregate: "uniq", alias: "sessions" }, count("pageViews", [PAGE_VIEW])],
  sessions: [
    VISITORS,
    count("sessions"),
    { field: "page_views", aggregate: "sum", alias: "pageViews" },
    count("bounces", [BOUNCE]),
    { field: "duration", aggregate: "p50", alias: "medianDuration" },
  ],
};

/** @param {string} table @returns {Select[]} */
export function summarySelects(table) {
  return SUMMARY_SELECTS[table] ?? [];
}

/** @type {Record<string, Definition>} */
export const BREAKDOWNS = {
  pages: {
    table: "events",
    groupBy: ["path"],
    selects: [count("views"), VISITORS],
    filters: [PAGE_VIEW, isSet("path")],
  },
  entry_pages: ofSessions("entry_path"),
  exit_pages: ofSessions("exit_path"),
  referrers: ofSessions("referrer"),
  campaigns: ofSessions("utm_source", "utm_medium", "utm_campaign"),
  countries: ofEvents("country"),
  browsers: ofEvents("browser_name"),
  systems: ofEvents("os_name"),
  devices: ofEvents("device_type"),
  events: {
    table: "events",
    groupBy: ["event_name"],
    selects: [count("events"), VISITORS],
    filters: [],
  },
};

const SESSIONS_ALONE = ["entry_path", "exit_path", "start_time", "end_time", "is_bounce", "duration", "page_views", "event_count"];
const BOTH = /^(session_id|anonymous_id|referrer|country|region|city|browser_name|os_name|device_type|language|utm_\w+)$/;

/** The tables on which all filters have a meaning. @param {FilterItem[]} filters @returns {Set<string>} */
export function applicableTables(filters) {
  const fields = filteredFields(filters);
  const tables = new Set(["events", "sessions"]);
  if (fields.some((field) => SESSIONS_ALONE.includes(field))) tables.delete("events");
  if (fields.some((field) => !BOTH.test(field) && !SESSIONS_ALONE.includes(field))) tables.delete("sessions");
  return tables;
}

/** A breakdown as the body of a custom query, without its range. @param {string} type @param {FilterItem[]} filters */
export function breakdownQuery(type, filters) {
  const { table, groupBy, selects, filters: own } = /** @type {Definition} */ (BREAKDOWNS[type]);
  return { table, selects, groupBy, filters: [...own, ...filters] };
}
