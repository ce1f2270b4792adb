/** Filters as words, in a sentence or a list: `set` writes a filter to its path, `at` tells what is refused there. `form` is the name of their form. */

import { html } from "../html.js";
import { filterSentence } from "../state/filters.js";
import { FilterEditor } from "./filter_editor.js";
import { Word } from "./word.js";

/** One filter, or a group of them in brackets. @param {any} props */
export function FilterWords({ item, path, ...shared }) {
  const kind = "or" in item ? "or" : "and" in item ? "and" : "";
  const { set, at, table, columns, form } = shared;
  if (kind) {
    return html`<span class="group">(</span>${item[kind].map((/** @type {any} */ inner, /** @type {number} */ index) => html`
      ${index > 0 && html`<span key=${`joint ${index}`}>${kind}</span>`}<${FilterWords} key=${`inner ${index} ${JSON.stringify(inner)}`} item=${inner} path=${[...path, kind, index]} ...${shared} />`)}
      <${AddFilter} path=${[...path, kind, item[kind].length]} label=${`+ ${kind}`} ...${shared} /><span class="group">)</span>`;
  }
  const isInGroup = typeof path.at(-2) === "string" && path.at(-2) !== "filters";
  return html`<${Word} title="Filter" draft=${draftOf(form, path)} label=${filterSentence(item)} ...${at(...path)}>${(/** @type {() => void} */ close) => html`<${FilterEditor} table=${table} columns=${columns} filter=${item}
    onDone=${(/** @type {any} */ changed) => (close(), set(path, changed))} onRemove=${() => (close(), set(path, undefined))}
    onGroup=${isInGroup ? undefined : () => (close(), set(path, { or: [item, { field: item.field, operator: "is_not_set" }] }))} />`}<//>`;
}

/** @param {any} props */
export function AddFilter({ path, label, table, columns, set, form, refusal, onCorrect }) {
  return html`<${Word} isAdd=${true} title="Add a filter" draft=${draftOf(form, path)} label=${label} refusal=${refusal} onCorrect=${onCorrect}>${(/** @type {() => void} */ close) => html`<${FilterEditor}
    table=${table} columns=${columns} onDone=${(/** @type {any} */ made) => (close(), set(path, made))} />`}<//>`;
}

/** @param {string} form @param {(string | number)[]} path */
function draftOf(form, path) {
  return `${form} ${path.join(" ")}`;
}
