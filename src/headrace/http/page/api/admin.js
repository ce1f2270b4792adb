/** What administers: objects, what is stored of a website, and what was erased. */

import { call } from "./client.js";

/** @typedef {import("./client.js").Row} Row */

/** @typedef {"organizations" | "websites" | "keys"} Kind */

/** @param {Kind} kind @param {AbortSignal} [signal] @returns {Promise<Row[]>} */
export async function list(kind, signal) {
  return dataOf(await call("GET", `/v1/admin/${kind}`, { signal }));
}

/** @param {Kind} kind @param {string} id @param {AbortSignal} [signal] @returns {Promise<Row>} */
export async function read(kind, id, signal) {
  return dataOf(await call("GET", `/v1/admin/${kind}/{id}`, { path: { id }, signal }));
}

/** @param {Kind} kind @param {object} body @returns {Promise<Row>} the new object; of a key with its secret */
export async function create(kind, body) {
  return dataOf(await call("POST", `/v1/admin/${kind}`, { body: /** @type {any} */ (body) }));
}

/** @param {Kind} kind @param {string} id @param {object} body @returns {Promise<Row>} */
export async function change(kind, id, body) {
  return dataOf(await call("PATCH", `/v1/admin/${kind}/{id}`, { path: { id }, body: /** @type {any} */ (body) }));
}

/** Delete an object, or revoke a key. @param {Kind} kind @param {string} id @returns {Promise<Row>} */
export async function remove(kind, id) {
  return dataOf(await call("DELETE", `/v1/admin/${kind}/{id}`, { path: { id } }));
}

/** @param {string} website @param {AbortSignal} [signal] @returns {Promise<Row[]>} one for each table */
export async function storage(website, signal) {
  return dataOf(await call("GET", "/v1/storage", { parameters: { website_id: website }, signal }));
}

/** @param {AbortSignal} [signal] @returns {Promise<Row[]>} entries without their content */
export async function quarantine(signal) {
  return dataOf(await call("GET", "/v1/admin/quarantine", { signal }));
}

/** @param {string} id @param {AbortSignal} [signal] @returns {Promise<Row>} an entry with its content */
export async function quarantined(id, signal) {
  return dataOf(await call("GET", "/v1/admin/quarantine/{id}", { path: { id }, signal, exact: "all" }));
}

/** Hand an entry to the store again. @param {string} id @returns {Promise<Row>} */
export async function retry(id) {
  return dataOf(await call("POST", "/v1/admin/quarantine/{id}/retry", { path: { id } }));
}

/** @param {{limit: number, before?: string}} parameters @param {AbortSignal} [signal] @returns {Promise<Row[]>} newest first */
export async function auditLines(parameters, signal) {
  return dataOf(await call("GET", "/v1/admin/audit", { parameters, signal }));
}

/** @param {string} website @param {AbortSignal} [signal] @returns {Promise<Row[]>} receipts, newest first */
export async function erasures(website, signal) {
  return dataOf(await call("GET", "/v1/erasures", { parameters: { website_id: website }, signal }));
}

/** Begin an erasure, or count what it would erase. @param {string} website @param {object} body @returns {Promise<Row>} */
export async function erase(website, body) {
  return dataOf(await call("POST", "/v1/erasures", { parameters: { website_id: website }, body }));
}

/** What an administrative call answers with; the document leaves open which object it is. @param {{data?: unknown}} answer @returns {any} */
function dataOf(answer) {
  return answer.data;
}
