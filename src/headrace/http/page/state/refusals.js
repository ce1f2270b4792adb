/** Where in a query a refusal belongs, and what the service thinks was meant. Pure. */

/** @typedef {import("./query_body.js").CustomBody} CustomBody */
/** @typedef {import("./query_body.js").Path} Path */
/** @typedef {{message: string, culprit: string, suggestion: string, path: Path}} Refusal  an empty path: the query as a whole */

const ROOT_PLACES = /** @type {Record<string, Path>} */ ({
  INVALID_TABLE: ["query", "table"],
  TOO_MANY_SELECTS: ["query", "selects"],
  TOO_MANY_FILTERS: ["query", "filters"],
  TOO_MANY_GROUP_BY: ["query", "groupBy"],
  INVALID_START_DATE: ["startDate"],
  INVALID_END_DATE: ["startDate"],
  INVALID_LAST_DAYS: ["startDate"],
  INVALID_TIMEZONE: ["timezone"],
  INVALID_GRANULARITY: ["granularity"],
  INVALID_LIMIT: ["limit"],
  INVALID_OFFSET: ["offset"],
  INVALID_FILL: ["fill"],
  INVALID_ORDER_BY: ["orderBy"],
  INVALID_HAVING: ["having"],
  INVALID_TOP: ["top"],
  INVALID_COMPARE: ["compare"],
  INVALID_TOTALS: ["totals"],
});

/** What a cause may be about: the keys at which the culprit may stand. @type {Record<string, string[]>} */
const KEYS = {
  INVALID_COLUMN: ["field", "groupBy"],
  NOT_FILTERABLE: ["field"],
  NOT_AGGREGATABLE: ["field"],
  INVALID_AGGREGATE: ["aggregate"],
  INVALID_OPERATOR: ["operator", "field"],
  INVALID_VALUE: ["value", "field"],
  INVALID_FILTER: ["field", "operator"],
  INVALID_SELECT: ["alias", "field"],
  DUPLICATE_OUTPUT_NAME: ["alias", "groupBy"],
};

/** @param {{message: string, code: string}} error @param {CustomBody} body @returns {Refusal} */
export function locate({ message, code }, body) {
  const culprit = /"((?:[^"\\]|\\.)*)"/.exec(message)?.[1] ?? "";
  const suggestion = /\(did you mean "((?:[^"\\]|\\.)*)"\?\)/.exec(message)?.[1] ?? "";
  const path = ROOT_PLACES[code] ?? find(body.query, culprit, KEYS[code] ?? [], ["query"]) ?? fallback(code, body);
  return { message, culprit, suggestion, path };
}

/** The query with what was meant in the place of what was refused. @param {CustomBody} body @param {Refusal} refusal @returns {CustomBody} */
export function corrected(body, { culprit, suggestion }) {
  return /** @type {CustomBody} */ (replaceText(body, culprit, suggestion));
}

/** The entry of `selects`, `filters` or `groupBy` that holds the culprit. @param {any} value @param {string} culprit @param {string[]} keys @param {Path} path @returns {Path | null} */
function find(value, culprit, keys, path) {
  for (const [key, inner] of Object.entries(value ?? {})) {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    if (keys.includes(key) && !Array.isArray(inner) && String(inner) === culprit) return path;
    if (key === "groupBy" && keys.includes(key) && inner.includes(culprit)) return [...at, inner.indexOf(culprit)];
    const found = typeof inner === "object" ? find(inner, culprit, keys, at) : null;
    if (found) return found;
  }
  return null;
}

/** @param {string} code @param {CustomBody} body @returns {Path} */
function fallback(code, body) {
  if (["INVALID_OPERATOR", "INVALID_VALUE", "INVALID_FILTER"].includes(code) && body.query.filters?.length === 1) return ["query", "filters", 0];
  if (["INVALID_SELECT", "INVALID_AGGREGATE"].includes(code) && body.query.selects.length === 1) return ["query", "selects", 0];
  return [];
}

/** @param {any} value @param {string} from @param {string} to @returns {any} */
function replaceText(value, from, to) {
  if (value === from) return to;
  if (Array.isArray(value)) return value.map((inner) => replaceText(inner, from, to));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key === from ? to : key, key === "value" ? inner : replaceText(inner, from, to)]));
}
