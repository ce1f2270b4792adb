/** Cohorts of a retention query, together and each. Pure. */

/** @typedef {Record<string, any>} Row  `size`, and `returned` with null for periods that have not begun */

/** @param {Row[]} rows */
export function sizeOf(rows) {
  return rows.reduce((total, row) => total + row["size"], 0);
}

/** How many of all cohorts whose period is over came back in it; the one that goes on would lower the share. @param {Row[]} rows @param {number} index */
export function together(rows, index) {
  const over = rows.filter((row) => row["returned"][index] != null && !isOpen(row["returned"], index));
  const count = over.reduce((total, row) => total + row["returned"][index], 0);
  return { count: over.length ? count : null, size: sizeOf(over) };
}

/** How many periods have begun for the oldest of the cohorts: the later ones have nothing to show. @param {Row[]} rows */
export function begunPeriods(rows) {
  return Math.max(0, ...rows.map((row) => row["returned"].filter((/** @type {number | null} */ count) => count != null).length));
}

/** Whether a period goes on: the next one has not begun. @param {(number | null)[]} returned @param {number} index */
export function isOpen(returned, index) {
  return returned[index] != null && index + 1 < returned.length && returned[index + 1] == null;
}
