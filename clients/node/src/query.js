/** Custom queries. */

import { QueryFailed } from "./failures.js";
import { post, reasonOfFailure } from "./sending/transport.js";

/**
 * Send a custom query and return its rows. Throws `QueryFailed`.
 * @param {import("./sending/transport.js").Service} service
 * @param {string} websiteId
 * @param {Record<string, unknown>} body
 * @returns {Promise<Record<string, unknown>[]>}
 */
export async function send(service, websiteId, body) {
  const path = `/v1/query/custom?website_id=${encodeURIComponent(websiteId)}`;
  const reply = await post(service, path, JSON.stringify(body) ?? "null");
  const rows = reply.body?.["data"];
  if (reply.status === 200 && Array.isArray(rows)) return rows;
  const message = reply.body?.["error"] ?? (reply.status ? `status ${reply.status}` : `no answer: ${reasonOfFailure(reply.error)}`);
  throw new QueryFailed(String(message), {
    status: reply.status,
    code: String(reply.body?.["code"] ?? ""),
    retryAfterMs: reply.retryAfterMs,
  });
}
