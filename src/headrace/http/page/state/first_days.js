/** The first days of a website: a range that fits them, and comparisons that would mean nothing. Pure. */

import { comparedBounds, dayCount } from "./dates.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {{summary: Row, timeseries: Row[]}} Figures  with `previous` where they are compared */

const COUNTS = ["visitors", "pageViews", "sessions"];
/** Days up to today that a website may open with; older ones open with the default. */
const FITTING = [1, 3, 7, 14];

/** Whether nothing is known before what is shown: the website may be new. @param {Figures} figures */
export function mayBeNew({ summary, timeseries }) {
  const before = summary["previous"] === undefined ? timeseries[0] : summary["previous"];
  return COUNTS.every((name) => !before?.[name]);
}

/** The range that begins with the first day or shortly before, null where the default fits. @param {string} firstDay @param {string} today @returns {{last: number, isFitted: true} | null} */
export function fittingRange(firstDay, today) {
  const days = dayCount({ startDate: firstDay, endDate: today });
  const last = FITTING.find((fitting) => fitting >= days);
  return last === undefined ? null : { last, isFitted: true };
}

/** Whether the range of a comparison ends before the first day. @param {import("./dates.js").Bounds} bounds @param {string} compare @param {string} firstDay "" where it is not known */
export function isBeforeFirst(bounds, compare, firstDay) {
  if (compare !== "previous_period" && compare !== "previous_year") return false;
  return comparedBounds(bounds, compare).endDate < firstDay;
}

/** The figures alone. @template {Figures} T @param {T} figures @returns {T} */
export function withoutPrevious(figures) {
  const alone = (/** @type {Row} */ row) => ({ ...row, previous: undefined });
  return { ...figures, summary: alone(figures.summary), timeseries: figures.timeseries.map(alone) };
}
