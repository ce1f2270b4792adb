/** Rows of an answer by a column. Pure. */

/** @typedef {Record<string, any>} Row */

/** The first row of each value. @param {Row[]} rows @param {string} column @returns {Map<any, Row>} */
export function firstByValue(rows, column) {
  return new Map(rows.toReversed().map((row) => [row[column], row]));
}

/** All rows of each value, in the order of the first ones. @param {Row[]} rows @param {string} column @returns {Map<any, Row[]>} */
export function rowsByValue(rows, column) {
  /** @type {Map<any, Row[]>} */
  const groups = new Map();
  for (const row of rows) {
    const group = groups.get(row[column]);
    if (group) group.push(row);
    else groups.set(row[column], [row]);
  }
  return groups;
}

/**
 * The values of a line up to the bucket that goes on, and those that lead to it: an unfinished day
 * is no fall. `open` is empty where all buckets are over.
 * @param {(number | null)[]} values @param {number} index of the bucket that goes on, -1 for none
 * @returns {{whole: (number | null)[], open: (number | null)[]}}
 */
export function splitOpen(values, index) {
  if (index < 0) return { whole: values, open: [] };
  const whole = values.map((value, at) => (at < index ? value : null));
  return { whole, open: values.map((value, at) => (at === index || at === index - 1 ? value : null)) };
}
