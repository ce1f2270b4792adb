/** Web vitals: what they measure, and where good ends and poor begins. Pure. */

import { exactNumber, NOTHING, shortNumber } from "../format.js";

/** @typedef {"good" | "fair" | "poor"} Rating */
/** @typedef {{name: string, good: number, poor: number, unit: "ms" | "" | "fps", isBetterHigh?: true}} Vital  without a threshold: Infinity */

/** @type {Record<string, Vital>} */
export const VITALS = {
  LCP: { name: "Largest contentful paint", good: 2500, poor: 4000, unit: "ms" },
  INP: { name: "Interaction to next paint", good: 200, poor: 500, unit: "ms" },
  CLS: { name: "Cumulative layout shift", good: 0.1, poor: 0.25, unit: "" },
  FCP: { name: "First contentful paint", good: 1800, poor: 3000, unit: "ms" },
  TTFB: { name: "Time to first byte", good: 800, poor: 1800, unit: "ms" },
  FPS: { name: "Frames per second", good: Infinity, poor: Infinity, unit: "fps", isBetterHigh: true },
};

export const RATING_WORDS = { good: "Good", fair: "Needs improvement", poor: "Poor" };

/** @param {string} metric @param {number | null | undefined} value @returns {Rating | null} */
export function ratingOf(metric, value) {
  const vital = VITALS[metric];
  if (value == null || !vital || vital.good === Infinity) return null;
  if (value <= vital.good) return "good";
  return value <= vital.poor ? "fair" : "poor";
}

/** In seconds from one on, three digits and a letter from ten thousand on. @param {string} metric @param {number | null | undefined} value */
export function vitalValue(metric, value) {
  if (value == null) return NOTHING;
  const unit = VITALS[metric]?.unit ?? "";
  if (unit === "") return (value < 10_000 ? exactNumber : shortNumber)(Number(value.toFixed(3)));
  if (unit === "fps" || Math.round(value) < 1000) return `${shortNumber(Math.round(value))} ${unit}`;
  const seconds = value / 1000;
  return `${seconds < 10_000 ? seconds.toFixed(2) : shortNumber(seconds)} s`;
}

/** All digits that matter. @param {string} metric @param {number | null | undefined} value */
export function exactVital(metric, value) {
  return value == null ? NOTHING : `${exactNumber(value)} ${VITALS[metric]?.unit ?? ""}`.trim();
}

/** The order of rows from the worst value to the best. @param {string} metric @returns {{field: string, direction: string}} */
export function worstFirst(metric) {
  return { field: "p75", direction: VITALS[metric]?.isBetterHigh ? "asc" : "desc" };
}

/**
 * Rows by the numbers of a column. Those with the same one keep their order; those without one are last.
 * @template {Record<string, any>} R
 * @param {R[]} rows @param {{field: string, direction?: string}} order @returns {R[]}
 */
export function ordered(rows, { field, direction }) {
  const sign = direction === "desc" ? -1 : 1;
  return rows.toSorted((one, other) => Number(one[field] == null) - Number(other[field] == null) || sign * (one[field] - other[field]));
}
