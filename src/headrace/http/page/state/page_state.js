/** What the page shows, as its URL: `parseUrl` and `formatUrl` are inverse. Pure. */

import { isDate, isTimezone, MAX_DAYS } from "./dates.js";
import { isFilterItem } from "./filters.js";
import { parseJson } from "./json.js";

/** @typedef {import("./dates.js").Range} Range */
/** @typedef {import("./dates.js").Granularity} Granularity */
/** @typedef {import("./filters.js").FilterItem} FilterItem */
/** @typedef {"previous_period" | "previous_year" | "none"} Compare */
/**
 * @typedef {object} PageState
 * @property {string} view  first part of the path below /app/; "overview" for none
 * @property {string} item  the rest of the path, decoded
 * @property {string} website
 * @property {Range} range
 * @property {string} timezone  "" for that of the browser
 * @property {Granularity | ""} granularity  "" for the suitable one
 * @property {Compare} compare
 * @property {FilterItem[]} filters
 * @property {string} metric  what the chart or the view is about
 * @property {string} query  JSON of a query's body, of the views that take one
 */

export const VIEWS = Object.freeze([
  "overview",
  "explore",
  "vitals",
  "errors",
  "funnels",
  "retention",
  "live",
  "setup",
  "admin",
]);
const GRANULARITIES = ["hourly", "daily", "weekly", "monthly"];
const COMPARES = ["previous_year", "none"];

/** @type {Readonly<PageState>} */
export const DEFAULT_STATE = Object.freeze({
  view: "overview",
  item: "",
  website: "",
  range: Object.freeze({ last: 30, isDefault: true }),
  timezone: "",
  granularity: "",
  compare: "previous_period",
  filters: [],
  metric: "",
  query: "",
});

/** Read a URL; what it cannot mean counts as absent. @param {string} url @returns {PageState} */
export function parseUrl(url) {
  const { pathname, searchParams } = new URL(url, "http://page.invalid");
  const [view = "", ...rest] = pathname.replace(/^\/app\/?/, "").split("/");
  const text = (/** @type {string} */ name) => searchParams.get(name) ?? "";
  const timezone = text("timezone");
  return {
    view: view === "" ? "overview" : view,
    item: rest.map(decoded).join("/"),
    website: text("website_id"),
    range: parseRange(text("from"), text("to"), text("last"), text("fitted")),
    timezone: isTimezone(timezone) ? timezone : "",
    granularity: /** @type {Granularity | ""} */ (oneOf(GRANULARITIES, text("granularity"), "")),
    compare: /** @type {Compare} */ (oneOf(COMPARES, text("compare"), DEFAULT_STATE.compare)),
    filters: parseFilters(text("filters")),
    metric: text("metric"),
    query: text("query"),
  };
}

/** Path and query of a state; what has its default is left out. @param {PageState} state @returns {string} */
export function formatUrl(state) {
  const { range } = state;
  const pairs = [
    ["website_id", state.website],
    ["from", "from" in range ? range.from : ""],
    ["to", "to" in range ? range.to : ""],
    ["last", "isAll" in range ? "all" : "last" in range && !range.isDefault ? String(range.last) : ""],
    ["fitted", "isFitted" in range ? "1" : ""],
    ["timezone", state.timezone],
    ["granularity", state.granularity],
    ["compare", state.compare === DEFAULT_STATE.compare ? "" : state.compare],
    ["filters", state.filters.length ? JSON.stringify(state.filters) : ""],
    ["metric", state.metric],
    ["query", state.query],
  ];
  const query = pairs
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}=${readable(value ?? "")}`)
    .join("&");
  const item = state.item && `/${state.item.split("/").map(encodeURIComponent).join("/")}`;
  const path = state.view === "overview" && !item ? "/app/" : `/app/${state.view}${item}`;
  return query ? `${path}?${query}` : path;
}

/** Encode a value of the query, but for characters that URLs take as they are. @param {string} value */
function readable(value) {
  return encodeURIComponent(value).replace(/%(2F|3A|2C|5B|5D|7B|7D|40|24)/g, decodeURIComponent);
}

/** What changes with the website: filters, items and a range that fits are those of one; items of administration are its pages. @param {PageState} state @param {string} website */
export function ofWebsite({ range, view, item }, website) {
  return { website, filters: [], item: view === "admin" ? item : "", range: "isFitted" in range ? DEFAULT_STATE.range : range };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string} from @param {string} to @param {string} last @param {string} fitted @returns {Range} */
function parseRange(from, to, last, fitted) {
  if (isDate(from) && isDate(to) && from <= to) return { from, to };
  if (last === "all") return { isAll: true };
  const days = Number(last);
  const isDays = /^\d{1,4}$/.test(last) && days >= 1 && days <= MAX_DAYS;
  if (!isDays) return DEFAULT_STATE.range;
  return fitted === "1" ? { last: days, isFitted: true } : { last: days };
}

/** @param {string} text @returns {FilterItem[]} */
function parseFilters(text) {
  try {
    const items = parseJson(text || "[]");
    return Array.isArray(items) && items.every(isFilterItem) ? items : [];
  } catch {
    return [];
  }
}

/** @param {readonly string[]} known @param {string} value @param {string} otherwise */
function oneOf(known, value, otherwise) {
  return known.includes(value) ? value : otherwise;
}
