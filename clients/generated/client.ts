/** Sends events, queries and administers with the types that openapi-typescript makes. */

import createClient from "openapi-fetch";

import type { components, paths } from "./schema.js";

/** Sends two events, asks for them in three ways, and returns what was answered. */
export async function run(url: string, key: string, website: string) {
  const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });
  const query = { website_id: website };
  const sent = await client.POST("/track", {
    params: { query },
    body: [
      { name: "signup", anonymousId: "ann", properties: { plan: "pro" } },
      { name: "purchase", anonymousId: "ann", properties: { value: 49.5 } },
    ],
  });
  const body: components["schemas"]["QueryRequest"] = {
    query: {
      table: "events",
      selects: [{ field: "*", aggregate: "count", alias: "events" }],
      filters: [{ field: "properties.plan", operator: "is_set" }],
      groupBy: ["event_name"],
    },
    lastDays: 2,
  };
  const rows = await client.POST("/v1/query/custom", { params: { query }, body });
  const schema = await client.GET("/v1/query/schema", { params: { query } });
  const values = await client.GET("/v1/query/values", {
    params: { query: { ...query, table: "events", field: "event_name" } },
  });
  const refused = await client.POST("/v1/query/custom", {
    params: { query },
    body: { ...body, query: { ...body.query, groupBy: ["pth"] } },
  });
  return {
    sent: sent.data?.count,
    rows: jsonOf(rows.data)?.data,
    keys: schema.data?.properties?.map(({ key: name }) => name),
    values: jsonOf(values.data)?.data.length,
    refused: refused.error?.code,
  };
}

/** Administers a website and a key of it, and erases the visitor of `run`. */
export async function administer(url: string, key: string, website: string) {
  const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });
  const made = await client.POST("/v1/admin/websites", {
    body: { name: "Shop", retention: { days: 30 } },
  });
  const id = made.data?.data.id ?? "";
  const path = { id };
  const renamed = await client.PATCH("/v1/admin/websites/{id}", {
    params: { path },
    body: { name: "Store" },
  });
  const listed = await client.GET("/v1/admin/websites");
  const reader = await client.POST("/v1/admin/keys", {
    body: { scopes: ["read:data"], websites: [id] },
  });
  const revoked = await client.DELETE("/v1/admin/keys/{id}", {
    params: { path: { id: reader.data?.data.id ?? "" } },
  });
  const deleted = await client.DELETE("/v1/admin/websites/{id}", { params: { path } });
  const changes = await client.GET("/v1/admin/audit", { params: { query: { limit: "1" } } });
  const query = { website_id: website };
  const found = await client.POST("/v1/erasures", {
    params: { query },
    body: { anonymousId: "ann", dryRun: true },
  });
  const erased = await client.POST("/v1/erasures", {
    params: { query },
    body: { anonymousId: "ann" },
  });
  const begun = receiptOf(erased.data);
  const shown = await client.GET("/v1/erasures/{id}", {
    params: { path: { id: begun?.id ?? "" } },
  });
  const receipts = await client.GET("/v1/erasures", { params: { query } });
  return {
    made: [made.data?.data.name, made.data?.data.retention.days],
    renamed: renamed.data?.data.name,
    listed: listed.data?.data.filter((one) => one.id === id).map(({ name }) => name),
    secret: reader.data?.data.key.startsWith(reader.data.data.prefix),
    revoked: [revoked.data?.data.scopes, revoked.data?.data.revoked != null],
    deleted: deleted.data?.data.deleted,
    change: changes.data?.data.map(({ action }) => action),
    found: found.data?.data.rows["events"],
    erased: [begun?.selector, begun?.rows["events"], begun?.answersClean != null],
    shown: shown.data?.data.subject === begun?.subject,
    receipts: receipts.data?.data.length,
  };
}

/** The receipt of an erasure, which a dry run has none of. */
function receiptOf(
  answer: components["schemas"]["ErasureResponse" | "ErasureDryRunResponse"] | undefined,
) {
  return answer && "id" in answer.data ? answer.data : undefined;
}

/** The JSON of a result, which could have been CSV. */
function jsonOf(data: components["schemas"]["QueryResponse"] | string | undefined) {
  return typeof data === "object" ? data : undefined;
}
