/** Lines of the audit log as people read them. Pure. */

import { NOTHING } from "../format.js";

/** @typedef {Record<string, any>} Row */

/** What a line is about: a name or the start of a key, else the id. @param {Row} line */
export function subjectOf(line) {
  const shown = line["after"] ?? line["before"] ?? {};
  return shown["name"] ?? shown["prefix"] ?? line["object"] ?? "";
}

/** The fields that a change gave another value; all of them where nothing was before, or is after. @param {Row} line @returns {{field: string, before: string, after: string}[]} */
export function changedFields({ before, after }) {
  const fields = Object.keys({ ...before, ...after });
  return fields.map((field) => ({ field, before: valueText(before?.[field]), after: valueText(after?.[field]) })).filter((row) => row.before !== row.after);
}

/** @param {unknown} value */
function valueText(value) {
  if (value == null) return NOTHING;
  return typeof value === "string" ? value : JSON.stringify(value);
}
