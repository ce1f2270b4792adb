/** Checks of options: one of a wrong type fails when the client is made, not in each call or request. */

import { HeadraceError } from "./failures.js";
import { unknownName } from "./names.js";

/** Blanks would divide the line of an outbox file; no id of a website has any. */
export const WEBSITE = /^\S{0,255}$/;

/** The options of a client, in the order in which messages list them. */
const OPTIONS = [
  ...["url", "key", "website", "directory", "sync", "maxOutboxBytes", "lingerMs", "timeoutMs"],
  ...["exitTimeoutMs", "onRefused"],
];
/** Names that have little in common with the option for which programs use them. */
const OTHER_NAMES = { clientid: "website", endpoint: "url", host: "url", outbox: "directory", token: "key" };

/**
 * Throw `HeadraceError` for what is no object of options, and for an option that does not exist,
 * which would be ignored without a word.
 * @param {unknown} options
 */
export function checkOptions(options) {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new HeadraceError('the options must be an object, such as { key: "hr_..." }');
  }
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown === undefined) return;
  throw new HeadraceError(unknownName("option", unknown, OPTIONS, OTHER_NAMES));
}

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

/**
 * Return a boolean; the text "false" would count as true. Throws `HeadraceError`.
 * @param {string} name
 * @param {unknown} value
 */
export function booleanOption(name, value) {
  if (typeof value !== "boolean") throw new HeadraceError(`${name} must be true or false`);
  return value;
}

/**
 * Return a function, or undefined. Throws `HeadraceError`.
 * @template T
 * @param {string} name
 * @param {T} value
 */
export function functionOption(name, value) {
  if (value !== undefined && typeof value !== "function") throw new HeadraceError(`${name} must be a function`);
  return value;
}
