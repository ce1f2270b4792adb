/** Markup in JavaScript: `html` makes nodes of preact; texts in it are never parsed as HTML. */

import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export const html = /** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */ (htm.bind(h));
