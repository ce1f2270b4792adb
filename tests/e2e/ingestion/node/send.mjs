// Sends events with the published SDK and prints what it says of each as JSON.
import { Databuddy } from "@databuddy/sdk/node";

const [apiUrl, apiKey, websiteId] = process.argv.slice(2);

const single = new Databuddy({ apiUrl, apiKey, websiteId, enableBatching: false });
const answers = [];
answers.push(
  await single.track({
    name: "purchase",
    namespace: "billing",
    source: "backend",
    anonymousId: "anon_1",
    sessionId: "sess_1",
    timestamp: 1714564800123,
    properties: { plan: "pro", seats: 3, annual: true },
  }),
);
answers.push(await single.track({ name: "minimal" }));

const batching = new Databuddy({ apiUrl, apiKey, websiteId, batchSize: 25, namespace: "jobs" });
for (let number = 0; number < 60; number += 1) {
  answers.push(await batching.track({ name: "job_done", properties: { number } }));
}
const flushed = await batching.flush();

const direct = await batching.batch([
  { type: "custom", name: "direct", anonymousId: null, sessionId: null, properties: null },
  { type: "custom", name: "direct", anonymizeVisitorIds: true, profileId: "user_1" },
]);

const broken = new Databuddy({ apiUrl, apiKey: "nonsense", websiteId, enableBatching: false });
const refused = await broken.track({ name: "never" });

console.log(JSON.stringify({ answers, flushed, direct, refused }));
