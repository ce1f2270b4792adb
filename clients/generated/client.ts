/** Sends events and asks for them with the types of schema.d.ts, which openapi-typescript makes. */

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

/** The JSON of a result, which could have been CSV. */
function jsonOf(data: components["schemas"]["QueryResponse"] | string | undefined) {
  return typeof data === "object" ? data : undefined;
}
