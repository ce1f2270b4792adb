/** Where in a query a refusal belongs, and what the service thinks was meant. Pure. */

import { outputName } from "./query_body.js";

/** @typedef {import("./query_body.js").CustomBody} CustomBody */
/** @typedef {import("./query_body.js").Path} Path */
/** @typedef {{message: string, culprit: string, suggestion: string, path: Path}} Refusal  an empty path: the query as a whole */

/** The words of what is about a part of the body as a whole; `offset` and `fill` have none. */
const ROOT_PLACES = /** @type {Record<string, Path>} */ ({
  INVALID_TABLE: ["query", "table"],
  TOO_MANY_SELECTS: ["query", "selects"],
  TOO_MANY_GROUP_BY: ["query", "groupBy"],
  INVALID_START_DATE: ["startDate"],
  INVALID_END_DATE: ["startDate"],
  INVALID_LAST_DAYS: ["startDate"],
  INVALID_TIMEZONE: ["timezone"],
  INVALID_GRANULARITY: ["granularity"],
  INVALID_LIMIT: ["limit"],
  INVALID_ORDER_BY: ["orderBy"],
  INVALID_HAVING: ["having"],
  INVALID_TOP: ["top"],
  INVALID_COMPARE: ["compare"],
  INVALID_TOTALS: ["totals"],
});

const QUOTED = /"((?:[^"\\]|\\.)*)"/;
const EACH_QUOTED = new RegExp(QUOTED, "g");
/** A hint with a name for the one that is refused; two that belong together are none. */
const HINT = /\((?:did you mean|a property is) "((?:[^"\\]|\\.)*)"(?:, or the property ".*")?\??\)/;
const ANY_PROPERTY = "properties.KEY";
/** Where a message says that the cause is: before the reason or the suggestion. */
const PLACE = /^[^:(]* in (query\.[\w.[\]]+)/;

/** @param {{message: string, code: string}} error @param {CustomBody} body @returns {Refusal} */
export function locate({ message, code }, body) {
  const culprit = QUOTED.exec(message)?.[1] ?? "";
  const named = HINT.exec(message)?.[1] ?? "";
  const suggestion = named === ANY_PROPERTY ? "" : named;
  const place = PLACE.exec(message.replace(EACH_QUOTED, '""'))?.[1];
  const path = place ? wordAt(pathOf(place), body) : rootWord(code, body) ?? findByName(code, culprit, body);
  const words = path.length && place ? message.replace(` in ${place}`, "") : message;
  return { message: words, culprit, suggestion, path };
}

/** The query with what was meant in the place of what was refused. @param {CustomBody} body @param {Refusal} refusal @returns {CustomBody} */
export function corrected(body, { culprit, suggestion }) {
  return /** @type {CustomBody} */ (replaceText(body, culprit, suggestion));
}

/** The groups are chosen at a word that is there with buckets and groups alone. @param {string} code @param {CustomBody} body @returns {Path | undefined} */
function rootWord(code, { granularity, query }) {
  const isHidden = code === "INVALID_TOP" && !(granularity && query.groupBy?.length);
  return isHidden ? [] : ROOT_PLACES[code];
}

/** @param {string} place @returns {Path} */
function pathOf(place) {
  return (place.match(/\w+/g) ?? []).map((part) => (/^\d/.test(part) ? Number(part) : part));
}

/** The word in which a place is shown: that of a select shows its filters too, and groups of filters have none. @param {Path} path @param {CustomBody} body @returns {Path} */
function wordAt(path, body) {
  if (path[1] === "selects") return path.slice(0, 3);
  const item = path.reduce((inner, key) => inner?.[key], /** @type {any} */ (body));
  const isSingle = item?.field !== undefined && !("or" in item || "and" in item);
  return path.length === 2 || isSingle ? path : [];
}

/** The entry that has a name which is refused wherever it is: selects come first, then filters. @param {string} code @param {string} name @param {CustomBody} body @returns {Path} */
function findByName(code, name, { query }) {
  const isDuplicate = code === "DUPLICATE_OUTPUT_NAME";
  if (!isDuplicate && code !== "INVALID_COLUMN") return [];
  const select = isDuplicate
    ? query.selects.findLastIndex((one) => outputName(one) === name)
    : query.selects.findIndex((one) => one.field === name || filterPath(one.filters, name, []));
  if (select >= 0) return ["query", "selects", select];
  const filter = isDuplicate ? undefined : filterPath(query.filters, name, ["query", "filters"]);
  if (filter) return filter;
  const group = (query.groupBy ?? []).lastIndexOf(name);
  return group >= 0 ? ["query", "groupBy", group] : [];
}

/** Where the first filter of a column stands, groups included. @param {any[] | undefined} items @param {string} column @param {Path} path @returns {Path | undefined} */
function filterPath(items, column, path) {
  for (const [index, item] of (items ?? []).entries()) {
    if (item.field === column) return [...path, index];
    const key = item.or ? "or" : "and";
    const inner = filterPath(item[key], column, [...path, index, key]);
    if (inner) return inner;
  }
  return undefined;
}

/** @param {any} value @param {string} from @param {string} to @returns {any} */
function replaceText(value, from, to) {
  if (value === from) return to;
  if (Array.isArray(value)) return value.map((inner) => replaceText(inner, from, to));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key === from ? to : key, key === "value" ? inner : replaceText(inner, from, to)]));
}
