/** The query endpoints: custom queries, other analyses, the schema, values of columns. */

import { call } from "./client.js";

/** @typedef {import("./client.js").Row} Row */
/** @typedef {import("../state/query_body.js").CustomBody} CustomBody */
/** @typedef {import("../state/query_body.js").Select} Select */
/** @typedef {Record<string, any> & {rowCount: number, executionTime: number}} Meta */
/** @typedef {{data: Row[], meta: Meta, totals?: Row, others?: Row[]}} Answer */
/** @typedef {{name: string, type: string, filterable: boolean, aggregatable: boolean, description: string}} Column */
/** @typedef {{name: string, description: string, columns: Column[]}} Table */
/** @typedef {{tables: Table[], aggregates: string[], operators: string[], limits: Record<string, number>, eventNames?: {name: string, count: number, lastSeen: string}[], properties?: {key: string, kinds: string[], count: number}[]}} Schema */

/** @param {string} website @param {CustomBody} body @param {AbortSignal} [signal] @returns {Promise<Answer>} */
export function custom(website, body, signal) {
  return call("POST", "/v1/query/custom", { parameters: { website_id: website }, body, signal });
}

/** @param {string} website @param {object} body @param {AbortSignal} [signal] @returns {Promise<Answer>} */
export function funnel(website, body, signal) {
  return call("POST", "/v1/query/funnel", { parameters: { website_id: website }, body, signal });
}

/** @param {string} website @param {object} body @param {AbortSignal} [signal] @returns {Promise<Answer>} */
export function retention(website, body, signal) {
  return call("POST", "/v1/query/retention", { parameters: { website_id: website }, body, signal });
}

/**
 * The most frequent values of a column.
 * @param {string} website
 * @param {{table: string, field: string, search?: string, limit?: number}} wanted
 * @param {AbortSignal} [signal]
 * @returns {Promise<{value: any, count: number}[]>}
 */
export async function values(website, wanted, signal) {
  const parameters = { website_id: website, ...wanted, search: wanted.search || undefined };
  return (await call("GET", "/v1/query/values", { parameters, signal })).data;
}

/** @type {Promise<Schema> | null} */
let known = null;

/** The schema and what the website's latest events have; it counts as a query. @param {string} website @param {AbortSignal} [signal] @returns {Promise<Schema>} */
export function schemaOf(website, signal) {
  return call("GET", "/v1/query/schema", { parameters: { website_id: website }, signal });
}

/** All tables and columns; read once. @returns {Promise<Schema>} */
export function schema() {
  known ??= call("GET", "/v1/query/schema").catch((error) => {
    known = null;
    throw error;
  });
  return known;
}
