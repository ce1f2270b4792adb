import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { ApiError, call, download } from "../../../src/headrace/http/page/api/client.js";

const AT = Date.UTC(2026, 0, 5, 10);

/** What the next request is answered with. @type {Response} */
let answer = new Response();

globalThis.fetch = async () => answer;

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["Date"], now: AT });
});

/** A response of a service that dies while it sends. */
function tornResponse() {
  const start = (/** @type {ReadableStreamDefaultController} */ controller) => {
    controller.enqueue(new TextEncoder().encode('{"data": ['));
    controller.error(new TypeError("network error"));
  };
  return new Response(new ReadableStream({ start }));
}

/** What a call fails with. @param {() => Promise<unknown>} calling */
async function failureOf(calling) {
  const error = await calling().then(() => null, (/** @type {unknown} */ failure) => failure);
  assert.ok(error instanceof ApiError, String(error));
  return [error.status, error.message];
}

for (const [kind, calling] of /** @type {[string, () => Promise<unknown>][]} */ ([
  ["numbers of any size", () => call("GET", "/v1/session", { exact: "all" })],
  ["numbers", () => call("GET", "/v1/session")],
  ["a file", () => download("POST", "/v1/query/custom", {}, "text/csv")],
])) {
  test(`an answer with ${kind} that breaks off is none of the service`, async () => {
    answer = tornResponse();
    assert.deepEqual(await failureOf(calling), [0, "The service does not answer"]);
  });
}

test("a page that a proxy sends in the place of an answer is none of the service", async () => {
  answer = new Response("<h1>Sign in to the network</h1>");
  assert.deepEqual(await failureOf(() => call("GET", "/v1/session")), [502, "This is no answer of the service"]);
});

test("a refusal that is no JSON has its status", async () => {
  answer = new Response("<h1>Bad gateway</h1>", { status: 502 });
  assert.deepEqual(await failureOf(() => call("GET", "/v1/session")), [502, "The service answers 502"]);
});

test("a call that was given up is no failure of the service", async () => {
  const start = (/** @type {ReadableStreamDefaultController} */ controller) => controller.error(new DOMException("", "AbortError"));
  answer = new Response(new ReadableStream({ start }));
  await assert.rejects(call("GET", "/v1/session"), { name: "AbortError" });
});

test("a refusal says in how many seconds a call may be tried again", async () => {
  const waits = [];
  for (const headers of [
    { "Retry-After": "7" },
    { "Retry-After": "0" },
    { "Retry-After": "Mon, 05 Jan 2026 10:00:30 GMT" },
    { "Retry-After": "Mon, 05 Jan 2026 09:59:00 GMT" },
    { "Retry-After": "Mon, 05 Jan 2026 12:00:20 GMT", Date: "Mon, 05 Jan 2026 12:00:00 GMT" },
    { "Retry-After": "soon" },
    {},
  ]) {
    answer = new Response("{}", { status: 503, headers: /** @type {Record<string, string>} */ (headers) });
    waits.push(await call("GET", "/v1/session").catch((error) => error.retryAfterS));
  }
  assert.deepEqual(waits, [7, 0, 30, 0, 20, 0, 0]);
});
