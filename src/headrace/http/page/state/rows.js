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
