/** Whose rows are to be erased, as the body of an erasure. Pure. */

import { numberOf } from "../json.js";

/** @typedef {{selector: string, key: string, value: string, type: string, withVisitors: boolean}} Selection  `key` and `type` are of properties */

export const SELECTORS = /** @type {Record<string, string>} */ (Object.freeze({
  anonymousId: "Visitor (anonymous id)",
  sessionId: "Session",
  profileId: "Profile",
  eventId: "Event",
  property: "Property",
}));

/** @returns {Selection} */
export function emptySelection() {
  return { selector: "anonymousId", key: "", value: "", type: "text", withVisitors: false };
}

/** Whether a selection names somebody. @param {Selection} selection */
export function isComplete({ selector, key, value, type }) {
  if (value === "" || (selector === "property" && key === "")) return false;
  return selector !== "property" || valueOf(value, type) !== undefined;
}

/** What is wrong with a value that has another type than the chosen one, "" for nothing. @param {Selection} selection */
export function problemOf({ selector, value, type }) {
  if (selector !== "property" || value === "" || valueOf(value, type) !== undefined) return "";
  return type === "number" ? "This is no number." : "Write true or false.";
}

/** @param {Selection} selection @returns {Record<string, unknown>} */
export function selectorOf({ selector, key, value, type, withVisitors }) {
  if (selector === "property") return { property: { key, value: valueOf(value, type) } };
  return { [selector]: value, ...(selector === "profileId" && withVisitors && { withVisitors }) };
}

/** @param {string} text @param {string} type @returns {string | number | bigint | boolean | undefined} undefined where the text has another type */
function valueOf(text, type) {
  if (type === "number") return numberOf(text);
  if (type === "boolean") return { true: true, false: false }[text.trim().toLowerCase()];
  return text;
}

/** How many rows a receipt counts, in all tables. @param {Record<string, number> | undefined} rows */
export function storedRows(rows) {
  return Object.values(rows ?? {}).reduce((total, count) => total + count, 0);
}
