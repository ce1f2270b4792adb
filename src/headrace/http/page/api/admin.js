/** What is stored of a website, and what was erased. */

import { call } from "./client.js";

/** @typedef {import("./client.js").Row} Row */

/** @param {string} website @param {AbortSignal} [signal] @returns {Promise<Row[]>} one for each table */
export async function storage(website, signal) {
  return (await call("GET", "/v1/storage", { parameters: { website_id: website }, signal })).data;
}

/** @param {string} website @param {AbortSignal} [signal] @returns {Promise<Row[]>} receipts, newest first */
export async function erasures(website, signal) {
  return (await call("GET", "/v1/erasures", { parameters: { website_id: website }, signal })).data;
}

/** Begin an erasure, or count what it would erase. @param {string} website @param {object} body @returns {Promise<Row>} */
export async function erase(website, body) {
  return (await call("POST", "/v1/erasures", { parameters: { website_id: website }, body })).data;
}
