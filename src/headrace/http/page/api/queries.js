/** The query endpoints: custom queries, other analyses, the schema, values of columns. */

import { MAX_DAYS } from "../state/dates.js";
import { call, download } from "./client.js";

/** @typedef {import("./client.js").Row} Row */
/** @typedef {import("../state/query_body.js").CustomBody} CustomBody */
/** @typedef {import("../state/query_body.js").Select} Select */
/** @typedef {import("./calls.js").Schema<"QueryMeta">} Meta */
/** @typedef {import("./calls.js").Schema<"SchemaColumn">} Column */
/** @typedef {import("./calls.js").Schema<"SchemaTable">} Table */
/** @typedef {import("./calls.js").Schema<"SchemaResponse">} Schema */
/** @typedef {{data: Row[], meta: Meta, totals?: Row, others?: Row[]}} Answer */

/** Figures are numbers, and what they are grouped by is exact. @param {string} website @param {CustomBody} body @param {AbortSignal} [signal] @returns {Promise<Answer>} */
export function custom(website, body, signal) {
  return call("POST", "/v1/query/custom", { parameters: { website_id: website }, body, signal, exact: body.query.groupBy });
}

/** When the first and the last row of a table of a website were, "" without one. @param {string} website @param {AbortSignal} [signal] @param {string} [table] @returns {Promise<{first: string, last: string}>} */
export async function rowSpan(website, signal, table = "events") {
  const selects = [["earliest", "first"], ["latest", "last"]].map(([aggregate, alias]) => ({ field: "time", aggregate: String(aggregate), alias }));
  const { data } = await custom(website, { query: { table, selects }, lastDays: MAX_DAYS }, signal);
  return { first: data[0]?.["first"] ?? "", last: data[0]?.["last"] ?? "" };
}

/** The rows as the service writes them in CSV. @param {string} website @param {CustomBody} body @returns {Promise<Blob>} */
export function customCsv(website, body) {
  return download("POST", "/v1/query/custom", { parameters: { website_id: website }, body }, "text/csv");
}

/** The statement that the service runs for a query. @param {string} website @param {CustomBody} body @returns {Promise<string>} */
export async function customSql(website, body) {
  return (await call("POST", "/v1/query/sql", { parameters: { website_id: website }, body })).sql;
}

/** @param {string} website @param {import("./calls.js").Loose<import("./calls.js").Schema<"FunnelRequest">>} body @param {AbortSignal} [signal] @returns {Promise<Answer>} */
export function funnel(website, body, signal) {
  return call("POST", "/v1/query/funnel", { parameters: { website_id: website }, body, signal, exact: body.groupBy ? [body.groupBy] : undefined });
}

/** @param {string} website @param {import("./calls.js").Loose<import("./calls.js").Schema<"RetentionRequest">>} body @param {AbortSignal} [signal] @returns {Promise<Answer>} */
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
  return /** @type {{value: any, count: number}[]} */ ((await call("GET", "/v1/query/values", { parameters, signal, exact: "all" })).data);
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
