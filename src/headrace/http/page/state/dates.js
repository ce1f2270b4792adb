/** Calendar days of a time zone, as `YYYY-MM-DD`, and ranges of them. Pure. */

/** @typedef {{last: number, isDefault?: true, isFitted?: true} | {from: string, to: string} | {isAll: true}} Range  `isDefault`: nobody has chosen it; `isFitted`: the page has, for this website; `isAll`: from the first row to today */
/** @typedef {{startDate: string, endDate: string}} Bounds  Both ends are included. */
/** @typedef {"hourly" | "daily" | "weekly" | "monthly"} Granularity */

export const MAX_DAYS = 3652;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** @param {string} text */
export function isDate(text) {
  return /^\d{4}-\d\d-\d\d$/.test(text) && addDays(text, 0) === text;
}

/** @param {string} date @param {number} days @returns {string} "" for an impossible date */
export function addDays(date, days) {
  const day = new Date(Date.parse(`${date}T00:00:00Z`) + days * DAY_MS);
  return Number.isNaN(day.getTime()) ? "" : day.toISOString().slice(0, 10);
}

/** How many days a range has. @param {Bounds} bounds */
export function dayCount({ startDate, endDate }) {
  return (Date.parse(endDate) - Date.parse(startDate)) / DAY_MS + 1;
}

/** @param {string} timezone @param {number} now epoch milliseconds */
export function todayIn(timezone, now = Date.now()) {
  return new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" }).format(now);
}

/** The current time in the form of the labels of buckets. @param {string} timezone @param {number} now */
function localTime(timezone, now) {
  return new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short", timeStyle: "medium" }).format(now);
}

/** Whether a bucket has begun; its label is in the same zone. @param {string} label @param {string} timezone @param {number} [now] */
export function hasBegun(label, timezone, now = Date.now()) {
  const text = localTime(timezone, now);
  return label <= text.slice(0, label.length);
}

/**
 * The index of the bucket that goes on, -1 where all are over. Labels are in the same zone.
 * @param {string[]} labels @param {string} granularity @param {string} timezone @param {number} [now]
 */
export function openBucket(labels, granularity, timezone, now = Date.now()) {
  const text = localTime(timezone, now);
  const shared = { hourly: 13, daily: 10, monthly: 7 }[granularity];
  // Where clocks are set back, two hours have one label; the first goes on while the second is still to come.
  const isRepeated = granularity === "hourly" && localTime(timezone, now + HOUR_MS).slice(0, shared) === text.slice(0, shared);
  if (isRepeated) return labels.findIndex((label) => label.slice(0, shared) === text.slice(0, shared));
  return labels.findLastIndex((label) => (shared ? label.slice(0, shared) === text.slice(0, shared) : label <= text && addDays(label, 7) > text.slice(0, 10)));
}

/** @param {Range} range @param {string} timezone @param {number} [now] @param {string} [first] the time of the first row, "" without one: all days begin with it @returns {Bounds} */
export function boundsOf(range, timezone, now, first = "") {
  if ("from" in range) return { startDate: range.from, endDate: range.to };
  const endDate = todayIn(timezone, now);
  if ("isAll" in range) return { startDate: firstDayUpTo(endDate, first && todayIn(timezone, Date.parse(first))), endDate };
  return { startDate: addDays(endDate, 1 - range.last), endDate };
}

/** The first of all days, of which a query takes ten years at most. @param {string} endDate @param {string} firstDay */
function firstDayUpTo(endDate, firstDay) {
  if (!firstDay || firstDay > endDate) return endDate;
  const earliest = addDays(endDate, 1 - MAX_DAYS);
  return firstDay > earliest ? firstDay : earliest;
}

/** The same number of days before or after. @param {Bounds} bounds @param {1 | -1} step */
export function shifted({ startDate, endDate }, step) {
  const days = step * dayCount({ startDate, endDate });
  return { startDate: addDays(startDate, days), endDate: addDays(endDate, days) };
}

/** The same number of days after, none of them in the future. @param {Bounds} bounds @param {string} today */
export function following(bounds, today) {
  const next = shifted(bounds, 1);
  return next.endDate <= today ? next : { startDate: addDays(today, 1 - dayCount(bounds)), endDate: today };
}

/**
 * The range that `compare` means. @param {Bounds} bounds
 * @param {"previous_period" | "previous_year"} compare @returns {Bounds}
 */
export function comparedBounds(bounds, compare) {
  if (compare === "previous_period") return shifted(bounds, -1);
  return { startDate: yearBefore(bounds.startDate), endDate: yearBefore(bounds.endDate) };
}

/** @param {string} date */
function yearBefore(date) {
  const year = String(Number(date.slice(0, 4)) - 1).padStart(4, "0");
  const same = `${year}${date.slice(4)}`;
  return isDate(same) ? same : `${year}-02-28`;
}

/** The most buckets that a range can touch. @param {Bounds} bounds @param {string} granularity */
export function bucketCount(bounds, granularity) {
  const days = dayCount(bounds);
  if (granularity === "hourly") return days * 24 + 1;
  if (granularity === "weekly") return Math.ceil(days / 7) + 1;
  return granularity === "monthly" ? Math.ceil(days / 28) + 1 : days;
}

/** The bucket that gives a chart between 24 and 120 points. @param {Bounds} bounds @returns {Granularity} */
export function suitableGranularity(bounds) {
  const days = dayCount(bounds);
  if (days <= 3) return "hourly";
  if (days <= 120) return "daily";
  return days <= 800 ? "weekly" : "monthly";
}

/** @param {string} zone */
export function isTimezone(zone) {
  try {
    return Boolean(zone) && Boolean(new Intl.DateTimeFormat("en", { timeZone: zone }));
  } catch {
    return false;
  }
}

/** The zone of this browser, UTC where it knows none: some then name one that they refuse themselves, `Etc/Unknown`. */
export function localTimezone() {
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return isTimezone(zone) ? zone : "UTC";
}
