/** Checks of options: one of a wrong type fails when the client is made, not in each call or request. */

import { HeadraceError } from "./failures.js";

/** Blanks would divide the line of an outbox file; no id of a website has any. */
export const WEBSITE = /^\S{0,255}$/;

/**
 * Return a text. Throws `HeadraceError`.
 * @param {string} name
 * @param {unknown} value
 */
export function textOption(name, value) {
  if (typeof value !== "string") throw new HeadraceError(`${name} must be a string`);
  return value;
}

/**
 * Return the id of a website, without the blanks around it. Throws `HeadraceError`.
 * @param {unknown} value
 */
export function websiteOption(value) {
  const website = textOption("website", value).trim();
  if (!WEBSITE.test(website)) throw new HeadraceError("the website has blanks or too many characters: give its id");
  return website;
}

/**
 * Return a number; `NaN` would end each request at once, or bound nothing. Throws `HeadraceError`.
 * @param {string} name
 * @param {unknown} value
 */
export function numberOption(name, value) {
  if (typeof value !== "number" || !(value >= 0)) throw new HeadraceError(`${name} must be a number, 0 or more`);
  return value;
}
