/** The first days of a website: a range that fits them, and comparisons that would mean nothing. Pure. */

import { comparedBounds, dayCount } from "./dates.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {{summary: Row, timeseries: Row[]}} Figures  with `previous` where they are compared */

const COUNTS = ["visitors", "pageViews", "sessions"];
/** Days up to today that a website may open with; older ones open with the default. */
const FITTING = [1, 3, 7, 14];

/** Whether the first event may be later than the first bucket that is looked at, compared ones included. @param {Figures} figures */
export function mayBeginLater({ timeseries: [first] }) {
  return isQuiet(first?.["previous"] === undefined ? first : first["previous"]);
}

/** @param {Row | null | undefined} row */
function isQuiet(row) {
  return COUNTS.every((name) => !row?.[name]);
}

/** The range that begins with the first day or shortly before, null where the default fits. @param {string} firstDay @param {string} today @returns {{last: number, isFitted: true} | null} */
export function fittingRange(firstDay, today) {
  const days = dayCount({ startDate: firstDay, endDate: today });
  const last = FITTING.find((fitting) => fitting >= days);
  return last === undefined ? null : { last, isFitted: true };
}

/**
 * How much of the range of a comparison is before the first day: a change from a part of it is none.
 * @param {import("./dates.js").Bounds} bounds @param {string} compare @param {string} firstDay "" where it is not known
 * @returns {"all" | "part" | "none"}
 */
export function beforeFirst(bounds, compare, firstDay) {
  if (compare !== "previous_period" && compare !== "previous_year") return "none";
  const { startDate, endDate } = comparedBounds(bounds, compare);
  if (startDate >= firstDay) return "none";
  return endDate < firstDay ? "all" : "part";
}

/** The figures without what is compared from before the first event. @template {Figures} T @param {T} figures @returns {T} */
export function sinceFirst({ summary, timeseries, ...rest }) {
  const alone = (/** @type {Row} */ row) => ({ ...row, previous: undefined });
  const begun = timeseries.findIndex(({ previous }) => !isQuiet(previous));
  return /** @type {any} */ ({ ...rest, summary: alone(summary), timeseries: timeseries.map((row, index) => (begun !== -1 && index >= begun ? row : alone(row))) });
}
