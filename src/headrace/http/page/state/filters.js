/** Filters of a query: what they say, and on which tables they have a meaning. Pure. */

import { valueName } from "./format.js";

/** @typedef {string | number | bigint | boolean} Scalar */
/** @typedef {{field: string, operator: string, value?: Scalar | Scalar[] | null}} Filter */
/** @typedef {Filter | {or: FilterItem[]} | {and: FilterItem[]}} FilterItem */

export const OPERATOR_WORDS = /** @type {Record<string, string>} */ ({
  eq: "is",
  ne: "is not",
  in: "is one of",
  not_in: "is none of",
  contains: "contains",
  not_contains: "does not contain",
  starts_with: "starts with",
  not_starts_with: "does not start with",
  ends_with: "ends with",
  not_ends_with: "does not end with",
  matches: "matches",
  not_matches: "does not match",
  gt: "is greater than",
  gte: "is at least",
  lt: "is less than",
  lte: "is at most",
  is_set: "is set",
  is_not_set: "is not set",
});

const COLUMN_WORDS = /** @type {Record<string, string>} */ ({
  path: "Page",
  entry_path: "Entry page",
  exit_path: "Exit page",
  event_name: "Event",
  browser_name: "Browser",
  os_name: "System",
  device_type: "Device",
  utm_source: "Campaign source",
  utm_medium: "Campaign medium",
  utm_campaign: "Campaign",
  is_bounce: "Bounce",
  is_bot: "Bot",
  anonymous_id: "Visitor",
  session_id: "Session",
});

/** A column's name for people. @param {string} column */
export function columnWords(column) {
  const words = Object.hasOwn(COLUMN_WORDS, column) ? String(COLUMN_WORDS[column]) : column.replace(/^properties\./, "property ").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** All single filters, in order. @param {FilterItem[]} items @returns {Filter[]} */
function singleFilters(items) {
  return items.flatMap((item) => {
    if ("or" in item) return singleFilters(item.or);
    return "and" in item ? singleFilters(item.and) : [item];
  });
}

/** The fields that filters name. @param {FilterItem[]} items @returns {string[]} */
export function filteredFields(items) {
  return [...new Set(singleFilters(items).map(({ field }) => field))];
}

/** A filter as text, the same in whatever order its keys are: people write links, too. @param {FilterItem} item */
function textOf(item) {
  return JSON.stringify(item, ["or", "and", "field", "operator", "value"]);
}

/** @param {FilterItem[]} items @param {FilterItem} item */
export function hasFilter(items, item) {
  return items.some((other) => textOf(other) === textOf(item));
}

/** Add a filter where it is not there yet. @param {FilterItem[]} items @param {FilterItem} item @returns {FilterItem[]} */
export function withFilter(items, item) {
  return hasFilter(items, item) ? items : [...items, item];
}

/** Add a filter, or take it away where it is already there. @param {FilterItem[]} items @param {FilterItem} item @returns {FilterItem[]} */
export function toggled(items, item) {
  return hasFilter(items, item) ? items.filter((other) => textOf(other) !== textOf(item)) : [...items, item];
}

/** @param {FilterItem} item @returns {string} one clause, as a person says it */
export function filterSentence(item) {
  if ("or" in item) return item.or.map(filterSentence).join(" or ");
  if ("and" in item) return item.and.map(filterSentence).join(" and ");
  const value = Array.isArray(item.value) ? item.value.map((one) => listed(valueName(item.field, one))).join(", ") : valueName(item.field, item.value);
  const words = OPERATOR_WORDS[item.operator] ?? item.operator;
  return `${columnWords(item.field)} ${words}${item.value == null ? "" : ` ${value}`}`;
}

/** A value among others, which a comma of its own would divide. @param {string} words */
function listed(words) {
  return words.includes(",") ? `“${words}”` : words;
}

/** @param {unknown} value @returns {value is FilterItem} */
export function isFilterItem(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  if ("or" in value) return Array.isArray(value.or) && value.or.every(isFilterItem);
  if ("and" in value) return Array.isArray(value.and) && value.and.every(isFilterItem);
  return "field" in value && typeof value.field === "string" && "operator" in value && typeof value.operator === "string";
}

/** Whether a value is an object whose filters, if it has any, can be shown. @param {any} value */
export function hasFilters(value) {
  return isObject(value) && isListOf(isFilterItem, value.filters);
}

/** @param {unknown} value */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value is a list of such entries, or none. @param {(one: any) => boolean} isEntry @param {any} value */
export function isListOf(isEntry, value) {
  return value == null || (Array.isArray(value) && value.every(isEntry));
}
