/** Saved queries of a website: a name, a query, and the address of its answer. */

import { call } from "./client.js";

/** @typedef {import("../state/query_body.js").CustomBody} CustomBody */
/** @typedef {{name: string, created: string, updated: string, url: string}} SavedQuery */
/** @typedef {{name: string, token: string | null, url: string}} SavedToken  the address has the token where it is new */

/** @param {string} website @param {AbortSignal} [signal] @returns {Promise<SavedQuery[]>} by name */
export async function savedQueries(website, signal) {
  return (await call("GET", "/v1/saved", { parameters: { website_id: website }, signal })).data;
}

/** @param {string} website @param {string} name @returns {Promise<CustomBody>} */
export async function savedBody(website, name) {
  const { data } = await call("GET", "/v1/saved/{name}", { path: { name }, parameters: { website_id: website }, exact: "all" });
  return /** @type {CustomBody} */ (data.query);
}

/** Save a query, or replace the one of that name. @param {string} website @param {string} name @param {CustomBody} body @returns {Promise<SavedToken>} */
export async function saveQuery(website, name, body) {
  return (await call("PUT", "/v1/saved/{name}", { path: { name }, parameters: { website_id: website }, body: body })).data;
}

/** @param {string} website @param {string} name */
export async function deleteSaved(website, name) {
  await call("DELETE", "/v1/saved/{name}", { path: { name }, parameters: { website_id: website } });
}
