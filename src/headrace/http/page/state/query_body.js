/** The body of a custom query: read from text, changed at a place, described. Pure. */

import { hasFilters, isFilterItem, isListOf, isObject } from "./filters.js";
import { parseJson } from "./json.js";

/** @typedef {import("./filters.js").FilterItem} FilterItem */
/** @typedef {{field: string, aggregate: string, alias?: string, filters?: FilterItem[]}} Select */
/**
 * @typedef {object} CustomBody
 * @property {{table: string, selects: Select[], filters?: FilterItem[], groupBy?: string[]}} query
 * @property {string} [startDate]
 * @property {string} [endDate]
 * @property {number} [lastDays]
 * @property {string} [timezone]
 * @property {string} [granularity]
 * @property {number} [limit]
 * @property {number} [offset]
 * @property {boolean} [fill]
 * @property {{field: string, direction?: string}[]} [orderBy]
 * @property {{field: string, operator: string, value: number | bigint}[]} [having]
 * @property {number} [top]
 * @property {boolean} [others]
 * @property {string | {startDate: string, endDate: string}} [compare]
 * @property {boolean} [totals]
 */
/** @typedef {(string | number)[]} Path  keys and indexes, from the body inwards */

/** @param {string} timezone @returns {CustomBody} */
export function firstBody(timezone) {
  return {
    query: { table: "events", selects: [{ field: "*", aggregate: "count", alias: "events" }] },
    lastDays: 30,
    timezone,
    granularity: "daily",
    fill: true,
  };
}

/** @param {string} text @returns {{body: CustomBody | null, problem: string}} */
export function parseBody(text) {
  let body;
  try {
    body = parseJson(text);
  } catch (error) {
    return { body: null, problem: error instanceof Error ? error.message : String(error) };
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) return { body: null, problem: "A query is a JSON object" };
  if (typeof body.query !== "object" || body.query === null) return { body: null, problem: 'The object has no "query"' };
  if (!Array.isArray(body.query.selects)) return { body: null, problem: '"query" has no list "selects"' };
  if (!isDrawable(body)) return { body: null, problem: "A list of the query is none, or has an entry of a wrong type" };
  return { body, problem: "" };
}

/** Whether the lists of a body are such that they can be shown as words; all else is the service's to refuse. @param {any} body */
function isDrawable({ query, orderBy, having }) {
  return isListOf((one) => hasFilters(one) && typeof one.field === "string", query.selects) && isListOf(isFilterItem, query.filters)
    && isListOf((one) => typeof one === "string", query.groupBy) && isListOf(isObject, orderBy) && isListOf(isFilterItem, having);
}

/**
 * A copy with another value at a path; undefined takes the key or the entry away. What holds
 * nothing any more, a list or a group of filters, goes too.
 * @template T
 * @param {T} value @param {Path} path @param {unknown} changed @returns {T}
 */
export function withAt(value, path, changed) {
  const [key, ...rest] = path;
  if (key === undefined) return /** @type {T} */ (changed);
  const source = /** @type {any} */ (value) ?? (typeof key === "number" ? [] : {});
  const inner = withAt(source[key], rest, changed);
  if (Array.isArray(source)) {
    const list = inner === undefined ? source.filter((_, index) => index !== key) : replaced(source, Number(key), inner);
    return /** @type {any} */ (list);
  }
  const { [key]: _, ...others } = source;
  if (inner === undefined || isHollow(key, inner)) return /** @type {any} */ (isGroup(source) ? undefined : others);
  if (isGroup(source) && inner.length === 1) return inner[0];
  return { ...source, [key]: inner };
}

/** @param {any[]} list @param {number} index @param {any} value */
function replaced(list, index, value) {
  return index >= list.length ? [...list, value] : list.with(index, value);
}

/** @param {string | number} key @param {any} value */
function isHollow(key, value) {
  return Array.isArray(value) && value.length === 0 && key !== "selects";
}

/** @param {any} value */
function isGroup(value) {
  return typeof value === "object" && value !== null && ("or" in value || "and" in value);
}

/** What an object of a link has: null is what it lacks. @param {Record<string, any>} found @returns {any} */
export function withoutNulls(found) {
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== null));
}

/** The name of a select in rows. @param {{field: string, aggregate: string, alias?: string}} select */
export function outputName({ field, aggregate, alias }) {
  return alias ?? (field === "*" ? "count_all" : `${aggregate}_${field.replaceAll(".", "_")}`);
}

/** @param {CustomBody} body @param {{last: number} | {from: string, to: string}} range @returns {CustomBody} */
export function withRange({ lastDays: _, startDate: __, endDate: ___, ...body }, range) {
  return "last" in range ? { ...body, lastDays: range.last } : { ...body, startDate: range.from, endDate: range.to };
}

/** What the rows of an answer are keyed by, in order. @param {CustomBody} body */
export function outputColumns({ query, granularity }) {
  return {
    date: granularity ? ["date"] : [],
    groups: query.groupBy ?? [],
    values: query.selects.map(outputName),
  };
}
