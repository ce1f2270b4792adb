/** How long rows of a website are kept: its own numbers, and which days a change takes out of answers. Pure. */

import { addDays, todayIn } from "../dates.js";

/** @typedef {Record<string, number | null>} Retention  days by table; `days` is for all tables; null where there is no number */
/** @typedef {{table: string, startDate: string, endDate: string}} Expiring  days in UTC, both included */

export const RETENTION_FIELDS = Object.freeze({ days: "All tables", events: "Events", errors: "Errors", performance: "Web vitals" });
const TABLES = Object.keys(RETENTION_FIELDS).filter((name) => name !== "days");
/** The days before a cutoff that are looked at: a query takes ten years at most. */
const DAYS_BEFORE = 3651;

/** A field as a number of days, null for an empty one, undefined where it is no such number. @param {string} text */
export function daysOf(text) {
  if (text.trim() === "") return null;
  return /^\d{1,5}$/.test(text.trim()) ? Number(text) : undefined;
}

/** The fields that have another number. @param {Retention} before @param {Retention} after @returns {Retention} */
export function changedRetention(before, after) {
  return Object.fromEntries(Object.entries(after).filter(([name, days]) => days !== (before[name] ?? null)));
}

/**
 * What would leave answers: the days of each table before its cutoff. Tables that keep the default
 * of the service are left out, as are those that keep rows for ever.
 * @param {Retention} retention @param {number} [now] epoch milliseconds
 * @returns {Expiring[]}
 */
export function expiringDays(retention, now = Date.now()) {
  const today = todayIn("UTC", now);
  return TABLES.flatMap((table) => {
    const days = retention[table] ?? retention["days"];
    if (!days) return [];
    const endDate = addDays(today, -days - 1);
    return [{ table, startDate: addDays(endDate, -DAYS_BEFORE), endDate }];
  });
}

/** The tables that would no longer have a number: the service has one for them that the page does not know. @param {Retention} before @param {Retention} after */
export function leftToService(before, after) {
  const own = (/** @type {Retention} */ given, /** @type {string} */ table) => given[table] ?? given["days"] ?? null;
  return TABLES.filter((table) => own(before, table) !== null && own(after, table) === null);
}

/** The number of a table in words. @param {number | null | undefined} days */
export function keptWords(days) {
  return days ? `${days.toLocaleString("en")} ${days === 1 ? "day" : "days"}` : "for ever";
}
