import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { openLive } from "../../../src/headrace/http/page/api/live.js";

const EVENT = 'event: event\nid: a-1\ndata: {"table":"events"}\n\n';
const MISSED = 'event: missed\nid: b-0\ndata: {"count":null}\n\n';
const AT = Date.UTC(2026, 0, 5, 10);

/** What the service does with each connection: a status, or texts of a stream that stays open. @type {(number | string[])[]} */
let answers = [];
/** @type {(string | undefined)[]} */
let lastIds = [];

globalThis.addEventListener = () => {};
globalThis.removeEventListener = () => {};
globalThis.fetch = async (url, { headers, signal }) => {
  assert.equal(url, "/v1/live?website_id=w");
  lastIds.push(headers?.["Last-Event-ID"]);
  const answer = answers.shift() ?? [];
  if (typeof answer === "number") return new Response("", { status: answer });
  const start = (controller) => {
    for (const text of answer) controller.enqueue(new TextEncoder().encode(text));
    signal.addEventListener("abort", () => controller.error(signal.reason));
  };
  return new Response(new ReadableStream({ start }));
};

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: AT });
  lastIds = [];
});

/** Let time pass, and everything happen that waits for it. @param {number} ms */
async function pass(ms) {
  mock.timers.tick(ms);
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** @param {(number | string[])[]} given */
async function opened(...given) {
  answers = given;
  const items = [];
  const states = [];
  const close = openLive("w", (item) => items.push(item), (state) => states.push(state));
  await pass(0);
  return { items, states, close };
}

test("a connection that is silent for 40 seconds is opened again after the last event", async () => {
  const { items, states, close } = await opened([":\n\n", EVENT], [":\n\n"]);
  await pass(39_999);
  assert.deepEqual(states, ["waiting", "open"]);
  await pass(1);
  assert.deepEqual(states, ["waiting", "open", "waiting"]);
  await pass(2_000);
  assert.deepEqual(states, ["waiting", "open", "waiting", "waiting", "open"]);
  assert.deepEqual(lastIds, [undefined, "a-1"]);
  assert.deepEqual(items, [{ kind: "event", body: { table: "events" } }]);
  close();
});

test("a list without an event goes on from the beginning of its stream, and shows no gap", async () => {
  const { items, close } = await opened([":\nid: a-0\n\n"], [":\n\n", EVENT]);
  await pass(40_000);
  await pass(2_000);
  assert.deepEqual(lastIds, [undefined, "a-0"]);
  assert.deepEqual(items, [{ kind: "event", body: { table: "events" } }]);
  close();
});

test("a stream is open once it is known where a list without an event goes on", async () => {
  const { states, close } = await opened([], [":\nid: a-0\n\n"]);
  assert.deepEqual(states, ["waiting"]);
  await pass(40_000);
  await pass(2_000);
  assert.deepEqual(states, ["waiting", "waiting", "waiting", "open"]);
  close();
});

test("what the service no longer has is between the last byte and the new connection", async () => {
  const { items, close } = await opened([":\n\n", EVENT], [":\n\n", MISSED, MISSED]);
  await pass(40_000);
  await pass(2_000);
  const from = "2026-01-05T10:00:00.000Z";
  assert.deepEqual(items.slice(1), [
    { kind: "missed", body: { count: null, from, to: "2026-01-05T10:00:42.000Z" } },
    { kind: "missed", body: { count: null } },
  ]);
  close();
});

test("items that are missed later are not those of the interruption", async () => {
  const { items, close } = await opened([":\n\n", EVENT], [":\n\n", ":\n\n", MISSED]);
  await pass(40_000);
  await pass(2_000);
  assert.deepEqual(items.slice(1), [{ kind: "missed", body: { count: null } }]);
  close();
});

test("a service that starts again is waited for, and one that refuses is not", async () => {
  const { states, close } = await opened(503, 429);
  assert.deepEqual(states, ["waiting", "waiting"]);
  await pass(2_000);
  await pass(60_000);
  assert.deepEqual(states, ["waiting", "waiting", "waiting", "refused"]);
  assert.equal(lastIds.length, 2);
  close();
});

test("a stream that was closed is not opened again", async () => {
  const { states, close } = await opened([":\n\n"]);
  close();
  await pass(60_000);
  assert.deepEqual([states, lastIds.length], [["waiting", "open"], 1]);
});
