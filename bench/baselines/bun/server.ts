// Reads events, validates them with the rules of the specification, answers as /track does, and
// keeps nothing. Run: bun server.ts PORT
import { Elysia } from "elysia";
import { z } from "zod";

const event = z.object({
  name: z.string().min(1).max(256),
  properties: z.record(z.string(), z.unknown()).nullish(),
  anonymousId: z.string().max(256).nullish(),
  sessionId: z.string().max(256).nullish(),
  timestamp: z.union([z.number(), z.string()]).nullish(),
  namespace: z.string().max(64).nullish(),
  source: z.string().max(64).nullish(),
  websiteId: z.string().max(255).nullish(),
  eventId: z.string().max(512).nullish(),
  path: z.string().max(2048).nullish(),
  url: z.string().max(2048).nullish(),
});

new Elysia()
  .post(
    "/track",
    ({ body }) => ({
      status: "success",
      type: "custom_event",
      count: Array.isArray(body) ? body.length : 1,
    }),
    { body: z.union([event, z.array(event)]) },
  )
  .listen({ hostname: "127.0.0.1", port: Number(process.argv[2]) });
