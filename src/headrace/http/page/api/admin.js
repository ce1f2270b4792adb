/** What administers: objects, what is stored of a website, and what was erased. */

import { call } from "./client.js";

/** @typedef {import("./calls.js").Schema<"OrganizationObject">} Organization */
/** @typedef {import("./calls.js").Schema<"WebsiteObject">} Website */
/** @typedef {import("./calls.js").Schema<"KeyObject"> & {key?: string}} Key  with its secret where it is new */
/** @typedef {import("./calls.js").Schema<"StorageObject">} Stored */
/** @typedef {import("./calls.js").Schema<"EntryObject">} Entry */
/** @typedef {import("./calls.js").Schema<"AuditObject">} AuditLine */
/** @typedef {import("./calls.js").Schema<"ErasureReceipt">} Receipt */
/** @typedef {{organizations: Organization, websites: Website, keys: Key}} Objects */
/** @typedef {{organizations: import("./calls.js").Schema<"OrganizationBody">, websites: import("./calls.js").Schema<"NewWebsite">, keys: import("./calls.js").Schema<"NewKey">}} NewObjects */
/** @typedef {{organizations: import("./calls.js").Schema<"OrganizationBody">, websites: import("./calls.js").Schema<"WebsitePatch">}} Changes */
/** @typedef {keyof Objects} Kind */

/** @template {Kind} K @param {K} kind @param {AbortSignal} [signal] @returns {Promise<Objects[K][]>} */
export async function list(kind, signal) {
  return /** @type {Objects[K][]} */ ((await call("GET", `/v1/admin/${/** @type {Kind} */ (kind)}`, { signal })).data);
}

/** @template {Kind} K @param {K} kind @param {string} id @param {AbortSignal} [signal] @returns {Promise<Objects[K]>} */
export async function read(kind, id, signal) {
  return /** @type {Objects[K]} */ ((await call("GET", `/v1/admin/${/** @type {Kind} */ (kind)}/{id}`, { path: { id }, signal })).data);
}

/** @template {Kind} K @param {K} kind @param {Partial<NewObjects[K]>} given @returns {Promise<Objects[K]>} the new object; of a key with its secret */
export async function create(kind, given) {
  const body = /** @type {NewObjects[K]} */ (given);
  return /** @type {Objects[K]} */ ((await call("POST", `/v1/admin/${/** @type {Kind} */ (kind)}`, { body })).data);
}

/** @template {keyof Changes} K @param {K} kind @param {string} id @param {Changes[K]} body @returns {Promise<Objects[K]>} */
export async function change(kind, id, body) {
  return /** @type {Objects[K]} */ ((await call("PATCH", `/v1/admin/${/** @type {keyof Changes} */ (kind)}/{id}`, { path: { id }, body })).data);
}

/** Delete an object, or revoke a key. @param {Kind} kind @param {string} id */
export async function remove(kind, id) {
  return (await call("DELETE", `/v1/admin/${kind}/{id}`, { path: { id } })).data;
}

/** @param {string} website @param {AbortSignal} [signal] @returns {Promise<Stored[]>} one for each table */
export async function storage(website, signal) {
  return (await call("GET", "/v1/storage", { parameters: { website_id: website }, signal })).data;
}

/** @param {AbortSignal} [signal] @returns {Promise<Entry[]>} entries without their content */
export async function quarantine(signal) {
  return (await call("GET", "/v1/admin/quarantine", { signal })).data;
}

/** @param {string} id @param {AbortSignal} [signal] an entry with its content */
export async function quarantined(id, signal) {
  return (await call("GET", "/v1/admin/quarantine/{id}", { path: { id }, signal, exact: "all" })).data;
}

/** Hand an entry to the store again. @param {string} id */
export async function retry(id) {
  return (await call("POST", "/v1/admin/quarantine/{id}/retry", { path: { id } })).data;
}

/** @param {{limit: number, before?: string}} parameters @param {AbortSignal} [signal] @returns {Promise<AuditLine[]>} newest first */
export async function auditLines(parameters, signal) {
  return (await call("GET", "/v1/admin/audit", { parameters, signal })).data;
}

/** @param {string} website @param {AbortSignal} [signal] @returns {Promise<Receipt[]>} newest first */
export async function erasures(website, signal) {
  return (await call("GET", "/v1/erasures", { parameters: { website_id: website }, signal })).data;
}

/** Begin an erasure, or count what it would erase. @param {string} website @param {object} body */
export async function erase(website, body) {
  return (await call("POST", "/v1/erasures", { parameters: { website_id: website }, body })).data;
}
