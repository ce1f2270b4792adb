/** From arguments to the items that the service takes. Ids and times are made here, once. */

import { randomUUID } from "node:crypto";
import { types } from "node:util";
import { unknownName } from "./names.js";
import { WEBSITE } from "./options.js";

/** @typedef {import("./outbox/record.js").Item} Item */
/** @typedef {import("./outbox/record.js").Kind} Kind */
/** A date, epoch milliseconds, or a text in ISO 8601. @typedef {Date | number | string} Timestamp */

/**
 * What every item may say; undefined is the same as leaving a field out. `websiteId` is the website
 * of the client by default; `ip` and `userAgent` are the visitor's, used for country, browser and
 * device and then forgotten.
 * @typedef {object} Fields
 * @property {Timestamp} [timestamp]
 * @property {string} [eventId]
 * @property {string} [websiteId]
 * @property {string} [anonymousId]
 * @property {string} [sessionId]
 * @property {string} [path]
 * @property {string} [url]
 * @property {string} [ip]
 * @property {string} [userAgent]
 */
/** @typedef {Fields & {profileId?: string | undefined, namespace?: string | undefined, source?: string | undefined}} EventFields */
/** @typedef {EventFields & {name: string, properties?: object | undefined}} Event */
/** @typedef {Fields & {metricName: "FCP" | "LCP" | "CLS" | "INP" | "TTFB" | "FPS", metricValue: number}} Vital */
/** @typedef {"debug" | "info" | "warning" | "error" | "fatal"} Level */
/**
 * @typedef {Fields & {message: string, level?: Level | undefined, errorType?: string | undefined, stack?: string | undefined,
 *   filename?: string | undefined, lineno?: number | undefined, colno?: number | undefined}} ErrorReport
 */
/** @typedef {Fields & {profileId: string, traits?: object | undefined}} Identification */

const COMMON_FIELDS = ["timestamp", "eventId", "websiteId", "anonymousId", "sessionId", "path", "url", "ip", "userAgent"];
const EVENT_FIELDS = [...COMMON_FIELDS, "profileId", "namespace", "source"];
const VITAL_FIELDS = [...COMMON_FIELDS, "metricName", "metricValue"];
/** Names that have little in common with the field for which programs use them. */
const OTHER_NAMES = { ipaddress: "ip", userid: "profileId", visitorid: "anonymousId" };

/** The most characters that the service takes, or keeps, of the texts of a report. */
const TEXTS = { message: 4096, stack: 65_536, errorType: 128, filename: 2048, path: 2048, url: 2048 };
const LEVELS = new Set(["debug", "info", "warning", "error", "fatal"]);
const isText = (/** @type {unknown} */ value) => typeof value === "string";
/** What a thrown object may have of a report. @type {Record<string, (value: unknown) => boolean>} */
const FIELDS = {
  ...Object.fromEntries([...Object.keys(TEXTS), "eventId", "websiteId", "anonymousId", "sessionId", "ip", "userAgent"].map((name) => [name, isText])),
  level: (value) => LEVELS.has(/** @type {string} */ (value)),
  lineno: Number.isFinite,
  colno: Number.isFinite,
  timestamp: (value) => isText(value) || Number.isFinite(Number(value ?? NaN)),
};

/**
 * Return an item for the outbox and its id. Throws `TypeError` for what no item can be made of:
 * values that JSON cannot express, a name that is no text.
 * @param {Kind} kind
 * @param {Record<string, unknown> & Fields} fields
 * @param {string} website the one of the client, "" for the home website of the key
 * @returns {{item: Item, id: string}}
 */
export function makeItem(kind, fields, website) {
  const time = Date.now();
  const id = fields.eventId || randomUUID();
  const own = fields.websiteId || website;
  if (typeof id !== "string") throw new TypeError("eventId must be a string");
  if (typeof own !== "string" || !WEBSITE.test(own)) throw new TypeError("websiteId must be a string without blanks");
  const json = JSON.stringify({ ...fields, websiteId: own || undefined, timestamp: readTimestamp(fields.timestamp, time), eventId: id });
  return { item: { time, kind, website: own, json }, id };
}

/**
 * @param {unknown} timestamp
 * @param {number} now
 */
function readTimestamp(timestamp, now) {
  const value = types.isDate(timestamp) ? Number(timestamp) : (timestamp ?? now);
  // JSON has null for them, and the service would take the time at which it received the item.
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError("the timestamp is no valid date");
  return value;
}

/**
 * Throw `TypeError` for a field that does not exist: the service would ignore it.
 * @param {object} fields
 * @param {readonly string[]} names
 */
function checkFields(fields, names) {
  const unknown = Object.entries(fields ?? {}).find(([name, value]) => value !== undefined && !names.includes(name));
  if (unknown) throw new TypeError(unknownName("field", unknown[0], names, OTHER_NAMES));
}

/**
 * Return the fields of an event of several. Throws `TypeError`.
 * @param {Event} event
 */
export function eventOfMany(event) {
  if (typeof event !== "object" || event === null) throw new TypeError("an event must be an object with a name");
  const { name, properties = {}, ...fields } = event;
  return eventOf(name, properties, fields);
}

/**
 * Return the fields of a web vital. Throws `TypeError`.
 * @param {Vital} vital
 */
export function vitalOf(vital) {
  if (typeof vital !== "object" || vital === null) throw new TypeError("a web vital must be an object");
  checkFields(vital, VITAL_FIELDS);
  return { path: "", ...given(vital) };
}

/**
 * Return the fields of an identification. Throws `TypeError`.
 * @param {string} profileId
 * @param {object | undefined} traits
 * @param {Fields} fields
 */
export function identificationOf(profileId, traits, fields) {
  if (typeof profileId !== "string" || !profileId) throw new TypeError("the profile id must be a string that is not empty");
  checkFields(fields, COMMON_FIELDS);
  return { ...fields, profileId, traits };
}

/**
 * Return the fields of an event. Throws `TypeError`.
 * @param {string} name
 * @param {object} properties
 * @param {EventFields} fields
 */
export function eventOf(name, properties, fields) {
  if (typeof name !== "string" || !name) throw new TypeError("the name of an event must be a string that is not empty");
  if (typeof properties !== "object" || Array.isArray(properties)) throw new TypeError("properties must be an object");
  checkFields(fields, EVENT_FIELDS);
  return { ...fields, name, properties };
}

/**
 * Return the fields of an error report, made of whatever was thrown. No report is lost for a text
 * that is too long, or has characters that the service refuses.
 * @param {unknown} error
 * @param {Partial<ErrorReport>} fields
 */
export function reportOf(error, fields) {
  /** @type {Record<string, unknown>} */
  const report = { path: "", ...describe(error), ...given(fields) };
  for (const [name, length] of Object.entries(TEXTS)) {
    const text = report[name];
    if (typeof text === "string") report[name] = text.slice(0, length).replace(/\p{Surrogate}|\0/gu, "\ufffd");
  }
  return report;
}

/**
 * Return the fields that are neither undefined nor null: these must not replace a default.
 * @param {object | null} fields
 */
const given = (fields) => Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value != null));

/** @param {unknown} error */
function describe(error) {
  if (isError(error)) return { message: messageOf(error), errorType: textOf(read(error, "name")), stack: stackOf(error) };
  if (isReport(error)) return fieldsOf(error);
  return { message: typeof error === "string" ? error : `Thrown: ${textOf(error)}` };
}

/**
 * Return what a thrown object has of a report: anything else in it may be no JSON.
 * @param {ErrorReport} error
 */
function fieldsOf(error) {
  const found = Object.keys(FIELDS).map((name) => /** @type {const} */ ([name, read(error, name)]));
  return Object.fromEntries(found.filter(([name, value]) => FIELDS[name]?.(value)));
}

/**
 * Return a field of what was thrown, whose getter may throw again.
 * @param {object} value
 * @param {string} name
 */
function read(value, name) {
  try {
    return /** @type {Record<string, unknown>} */ (value)[name];
  } catch {
    return undefined;
  }
}

/**
 * Return whether a value is an error, also one of another realm (`node:vm`, Jest).
 * @param {unknown} value
 * @returns {value is Error}
 */
const isError = (value) => value instanceof Error || types.isNativeError(value);

/** @param {unknown} value */
function textOf(value) {
  try {
    return String(value);
  } catch {
    return Object.prototype.toString.call(value); // an object without a prototype has no text
  }
}

/**
 * @param {unknown} value
 * @returns {value is ErrorReport}
 */
const isReport = (value) => typeof value === "object" && value !== null && typeof read(value, "message") === "string";

/**
 * Return the message of an error. Node.js gives none to an error that stands for several, such as
 * those of all addresses of a host that refuses connections.
 * @param {Error} error
 */
const messageOf = (error) => textOf(read(error, "message")) || errorsOf(error).map((one) => textOf(read(one, "message"))).join("; ");

/**
 * Return the errors for which an error stands, such as an `AggregateError`.
 * @param {Error} error
 * @returns {Error[]}
 */
function errorsOf(error) {
  const errors = read(error, "errors");
  return Array.isArray(errors) ? errors.filter(isError) : [];
}

/**
 * Return the stack of an error, of the errors for which it stands, and of its causes.
 * @param {Error} error
 */
function stackOf(error) {
  const stacks = [];
  const seen = new Set();
  /** Those to come, the next one last. @type {{label: string, error: unknown}[]} */
  const open = [{ label: "", error }];
  for (let next; (next = open.pop()); ) {
    if (!isError(next.error) || seen.has(next.error)) continue;
    seen.add(next.error);
    stacks.push(next.label + textOf(read(next.error, "stack") ?? next.error));
    const parts = errorsOf(next.error).map((part) => ({ label: "One of its errors: ", error: part }));
    open.push({ label: "Caused by: ", error: read(next.error, "cause") }, ...parts.reverse());
  }
  return stacks.join("\n");
}
