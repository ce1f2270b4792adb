/** The names of a funnel's steps. */

import { filterSentence } from "../filters.js";

/** @typedef {{name?: string, filters?: import("../filters.js").FilterItem[]}} Step */

/** The name of a step; one without a name is called by its only filter. @param {Step} step @param {number} number */
export function stepName({ name, filters = [] }, number) {
  const [only, ...others] = filters;
  if (name || !only || others.length > 0) return name || `Step ${number}`;
  const isOfNames = "field" in only && only.field === "event_name" && ["eq", "in"].includes(only.operator);
  return (isOfNames ? [only.value].flat().join(", ") : filterSentence(only)) || `Step ${number}`;
}
