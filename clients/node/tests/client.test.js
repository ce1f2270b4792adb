import assert from "node:assert/strict";
import { readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { runInNewContext } from "node:vm";
import { Headrace, HeadraceError, OutboxFull, QueryFailed } from "../src/index.js";
import { readRetryAfter } from "../src/sending/transport.js";
import { judge } from "../src/sending/verdict.js";
import { refusal, withService } from "./service.js";

/** @typedef {import("./service.js").Received} Received */

/** @param {Received[]} received */
const names = (received) => received.flatMap(({ items }) => items.map(({ name }) => name));

/** Wait for a condition, however slow the machine is. @param {() => unknown} condition */
async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("every kind of item is sent to its endpoint, with its id and time", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    const before = Date.now();
    const ids = [
      headrace.track("signup", { plan: "pro" }, { anonymousId: "anon_1" }),
      headrace.vitals({ metricName: "LCP", metricValue: 1200, path: "/pricing" }),
      headrace.errors(new TypeError("no cart"), { path: "/cart" }),
      headrace.identify("account-1", { plan: "pro" }, { anonymousId: "anon_1" }),
      headrace.track("dated", {}, { timestamp: new Date(1_700_000_000_000), eventId: "own", websiteId: "web_2" }),
    ];
    assert.equal(await headrace.flush(), true);

    const found = received.map(({ path, items: [{ timestamp, stack, ...item }] }) => {
      assert.ok(timestamp === 1_700_000_000_000 || (timestamp >= before && timestamp <= Date.now()));
      if (path.startsWith("/errors")) assert.match(stack, /^TypeError: no cart\n +at /);
      return [path, item];
    });
    assert.deepEqual(found, [
      ["/track?website_id=web_1", { name: "signup", properties: { plan: "pro" }, anonymousId: "anon_1", websiteId: "web_1", eventId: ids[0] }],
      ["/vitals?website_id=web_1", { metricName: "LCP", metricValue: 1200, path: "/pricing", websiteId: "web_1", eventId: ids[1] }],
      ["/errors?website_id=web_1", { message: "no cart", errorType: "TypeError", path: "/cart", websiteId: "web_1", eventId: ids[2] }],
      ["/identify?website_id=web_1", { profileId: "account-1", traits: { plan: "pro" }, anonymousId: "anon_1", websiteId: "web_1", eventId: ids[3] }],
      ["/track?website_id=web_2", { name: "dated", properties: {}, websiteId: "web_2", eventId: "own" }],
    ]);
    assert.equal(received[0]?.headers.authorization, "Bearer hr_test");
    assert.equal(new Set(ids).size, 5);
    assert.deepEqual({ ...headrace.stats(), bytes: 0 }, { pending: 0, bytes: 0, sent: 5, refused: 0, damaged: 0, lastError: "" });
  }));

test("many items are sent in few requests, compressed", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    const ids = headrace.trackMany(Array.from({ length: 2500 }, (_, n) => ({ name: "row", properties: { n } })));
    assert.equal(await headrace.flush(), true);
    assert.deepEqual(received.flatMap(({ items }) => items.map(({ eventId }) => eventId)), ids);
    assert.ok(received.length <= 4, String(received.length));
    assert.equal(received[0]?.headers["content-encoding"], "gzip");
  }));

test("an answer of megabytes is not read to its end, and the items are sent again", () =>
  withService(async (world) => {
    const padding = "x".repeat(8 * 1024 * 1024);
    world.answers = () => (world.received.length > 1 ? undefined : { status: 200, body: { padding, status: "success" } });
    const headrace = world.client();
    headrace.track("kept");
    assert.equal(await headrace.flush(), true);
    assert.deepEqual(names(world.received), ["kept", "kept"]);
  }));

for (const [failure, answer] of /** @type {[string, import("./service.js").Answer][]} */ ([
  ["503", refusal(503, "UNAVAILABLE")],
  ["429", refusal(429, "RATE_LIMITED")],
  ["500", refusal(500, "INTERNAL")],
  ["401", refusal(401, "INVALID_API_KEY")],
  ["a connection that is cut", "reset"],
  ["400 of something else on the way", { status: 400, body: "<html>" }],
  ["404 of something else on the way", { status: 404, body: "<html>" }],
  ["415 of something else on the way", { status: 415, body: { message: "Unsupported" } }],
  ["200 of something else on the way", { status: 200, body: "<html>" }],
])) {
  test(`what was answered by ${failure} is sent again with the same ids`, () =>
    withService(async (world) => {
      let failures = 2;
      world.answers = () => (failures-- > 0 ? answer : undefined);
      const headrace = world.client();
      const id = headrace.track("signup");
      assert.equal(await headrace.flush(20_000), true);
      assert.deepEqual(world.received.map(({ items }) => items.map(({ eventId }) => eventId)), [[id], [id], [id]]);
      assert.deepEqual([headrace.stats().sent, headrace.stats().refused], [1, 0]);
    }));
}

test("what is refused for good is kept in a file, and what is beside it is sent", () =>
  withService(async (world) => {
    world.answers = ({ items }) => {
      const index = items.findIndex(({ name }) => name === "bad");
      return index < 0 ? undefined : refusal(400, "INVALID_BODY", { errors: ["name", "path"].map((field) => ({ index, field, message: "Bad" })) });
    };
    /** @type {unknown[]} */
    const told = [];
    const headrace = world.client({ onRefused: (item, reason) => told.push([item["name"], reason.status, reason.code, reason.message]) });
    headrace.trackMany(["one", "bad", "two", "bad", "three"].map((name) => ({ name })));
    assert.equal(await headrace.flush(), true);
    assert.deepEqual(names(world.received.slice(-1)), ["one", "two", "three"]);
    assert.deepEqual([headrace.stats().sent, headrace.stats().refused], [3, 2]);
    assert.deepEqual(told, Array(2).fill(["bad", 400, "INVALID_BODY", "name: Bad; path: Bad"]));
    const [folder] = readdirSync(world.directory);
    const lines = readFileSync(join(world.directory, String(folder), "refused.ndjson"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ status, code, message, kind, website, item }) => [status, code, message, kind, website, item.name]),
      Array(2).fill([400, "INVALID_BODY", "name: Bad; path: Bad", "track", "web_1", "bad"]),
    );
  }));

test("a function for refused items that fails keeps no other item from it", () =>
  withService(async (world) => {
    world.answers = () => refusal(403, "SCOPE_MISMATCH");
    /** @type {unknown[]} */
    const told = [];
    const fail = (/** @type {Record<string, unknown>} */ item) => {
      told.push(item["name"]);
      throw new Error("in the function");
    };
    const later = async (/** @type {Record<string, unknown>} */ item) => fail(item); // a rejection that nobody handles would end the program
    for (const onRefused of [fail, later]) {
      const headrace = world.client({ onRefused });
      headrace.trackMany([{ name: "one" }, { name: "two" }]);
      assert.equal(await headrace.flush(), true);
      await headrace.close();
    }
    assert.deepEqual(told, ["one", "two", "one", "two"]);
  }));

test("one website without rights does not cost the items of another", () =>
  withService(async (world) => {
    world.answers = ({ path }) => (path.endsWith("web_2") ? refusal(403, "SCOPE_MISMATCH") : undefined);
    const headrace = world.client();
    headrace.track("mine");
    headrace.track("other", {}, { websiteId: "web_2" });
    assert.equal(await headrace.flush(), true);
    assert.deepEqual([headrace.stats().sent, headrace.stats().refused], [1, 1]);
  }));

test("a request that is too large is halved until it fits", () =>
  withService(async (world) => {
    world.answers = ({ items }) => (items.length > 3 || items.some(({ name }) => name === "huge") ? refusal(413, "PAYLOAD_TOO_LARGE") : undefined);
    const headrace = world.client();
    headrace.trackMany(Array.from({ length: 10 }, (_, n) => ({ name: `row-${n}` })));
    headrace.track("huge");
    assert.equal(await headrace.flush(), true);
    assert.deepEqual([headrace.stats().sent, headrace.stats().refused], [10, 1]);
  }));

test("the service is not called before its Retry-After, not even by flush", () =>
  withService(async (world) => {
    world.answers = () => ({ ...refusal(503, "UNAVAILABLE"), headers: { "Retry-After": "60" } });
    const headrace = world.client();
    headrace.track("signup");
    await until(() => headrace.stats().lastError);
    assert.equal(await headrace.flush(300), false);
    assert.equal(await headrace.flush(300), false);
    assert.equal(world.received.length, 1);
    assert.deepEqual([headrace.stats().pending, headrace.stats().lastError], [1, "503 unavailable"]);
  }));

for (const [what, answer, lastError] of /** @type {const} */ ([
  ["a redirection", { status: 301, headers: { Location: "https://shop.example/" } }, "unexpected redirect"],
  ["a page with the status 200", { status: 200, body: "Sign in" }, "200, but the answer is not from Headrace"],
])) {
  test(`${what} is named as the last error`, () =>
    withService(async (world) => {
      world.answers = () => answer;
      const headrace = world.client();
      headrace.track("signup");
      await until(() => headrace.stats().lastError);
      assert.equal(await headrace.flush(100), false);
      assert.deepEqual([headrace.stats().pending, headrace.stats().lastError], [1, lastError]);
    }));
}

test("a request without a deadline is answered", () =>
  withService(async ({ client }) => {
    const headrace = client({ timeoutMs: Infinity });
    headrace.track("signup");
    assert.equal(await headrace.flush(), true);
  }));

test("a flush without end waits without a warning", () =>
  withService(async (world) => {
    /** @type {Error[]} */
    const warnings = [];
    const keep = (/** @type {Error} */ warning) => void warnings.push(warning);
    process.on("warning", keep);
    try {
      const headrace = world.client();
      headrace.track("signup");
      assert.equal(await headrace.flush(Infinity), true);
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(warnings, []);
    } finally {
      process.off("warning", keep);
    }
  }));

test("a flush ends with the client", () =>
  withService(async (world) => {
    world.answers = () => refusal(503, "UNAVAILABLE");
    const headrace = world.client();
    headrace.track("signup");
    const flushed = headrace.flush(Infinity);
    assert.equal(await headrace.close(20), false);
    const late = new Promise((resolve) => setTimeout(resolve, 2000, "still waiting"));
    assert.equal(await Promise.race([flushed, late]), false);
  }));

test("a clock that is set back lengthens neither a flush nor a pause", (context) =>
  withService(async (world) => {
    world.answers = () => (world.received.length === 1 ? { ...refusal(503, "UNAVAILABLE"), headers: { "Retry-After": "1" } } : undefined);
    const headrace = world.client();
    headrace.track("signup");
    await until(() => headrace.stats().lastError);
    assert.equal(await headrace.flush(50), false);
    const hourAgoMs = Date.now() - 3_600_000;
    context.mock.method(Date, "now", () => hourAgoMs);
    assert.equal(await headrace.flush(60_000), true);
  }));

test("what a client leaves behind is sent by the next one, and nothing is sent twice", () =>
  withService(async (world) => {
    world.answers = () => ({ ...refusal(503, "UNAVAILABLE"), headers: { "Retry-After": "60" } }); // no request is under way when it is closed
    const first = world.client();
    const ids = [first.track("one"), first.track("two")];
    await until(() => first.stats().lastError);
    assert.equal(await first.close(100), false);
    assert.throws(() => first.track("three"), HeadraceError);
    world.answers = () => undefined;
    world.received.length = 0;
    const second = world.client();
    assert.equal(await second.flush(), true);
    assert.deepEqual(world.received.flatMap(({ items }) => items.map(({ eventId }) => eventId)), ids);
    await second.close();
    const [folder] = readdirSync(world.directory);
    assert.deepEqual(readdirSync(join(world.directory, String(folder))), []);
  }));

test("an item that is older than the memory of the service for ids is refused instead of sent", () =>
  withService(async (world) => {
    world.answers = () => ({ ...refusal(503, "UNAVAILABLE"), headers: { "Retry-After": "60" } });
    const first = world.client();
    first.track("late");
    await until(() => world.received.length);
    await first.close(50);
    world.received.length = 0;
    world.answers = () => undefined;
    const { now } = Date;
    Date.now = () => now() + 7 * 86_400_000;
    try {
      const second = world.client();
      await until(() => !second.stats().pending);
      assert.deepEqual([second.stats().refused, world.received.length], [1, 0]);
    } finally {
      Date.now = now;
    }
  }));

test("an outbox that is deleted during a request is written again, and nothing is sent twice", () =>
  withService(async (world) => {
    const headrace = world.client();
    world.answers = () => {
      if (world.received.length > 1) return undefined;
      rmSync(world.directory, { recursive: true });
      headrace.track("two");
      return undefined;
    };
    headrace.track("one");
    for (let n = 0; n < 2; n++) assert.equal(await headrace.flush(), true);
    assert.deepEqual(names(world.received), ["one", "two"]);
    assert.equal(readdirSync(world.directory).length, 1);
  }));

test("a full outbox throws, and nothing that was taken is lost", () =>
  withService(async (world) => {
    world.answers = () => refusal(503, "UNAVAILABLE");
    const headrace = world.client({ maxOutboxBytes: 2000 });
    let taken = 0;
    assert.throws(() => {
      for (;;) {
        headrace.track("row", { taken });
        taken++;
      }
    }, OutboxFull);
    world.answers = () => undefined;
    assert.equal(await headrace.flush(20_000), true);
    assert.ok(taken > 5);
    assert.equal(headrace.stats().sent, taken);
  }));

test("arguments that no item can be made of throw, and the outbox stays empty", () =>
  withService(async ({ client }) => {
    const headrace = client();
    /** @type {Record<string, unknown>} */
    const circular = {};
    Object.assign(circular, { circular });
    for (const call of /** @type {(() => void)[]} */ ([
      () => headrace.track(""),
      () => headrace.track(/** @type {any} */ (7)),
      () => headrace.track("x", /** @type {any} */ ([])),
      () => headrace.track("x", circular),
      () => headrace.track("x", { big: 1n }),
      () => headrace.track("x", {}, { websiteId: "two words" }),
      () => headrace.track("x", {}, { timestamp: new Date("yesterday") }),
      () => headrace.vitals({ metricName: "LCP", metricValue: 1, timestamp: NaN }),
    ])) {
      assert.throws(call, TypeError);
    }
    assert.equal(headrace.stats().pending, 0);
  }));

test("an unknown field is refused, and the nearest one is named", () =>
  withService(async ({ client }) => {
    const headrace = client();
    const unknown = /** @type {any} */ ({ anonymous_id: "anon_1" });
    const message = 'unknown field "anonymous_id": did you mean "anonymousId"?';
    for (const call of [
      () => headrace.track("signup", {}, unknown),
      () => headrace.trackMany([{ name: "signup", ...unknown }]),
      () => headrace.vitals({ metricName: "LCP", metricValue: 1, ...unknown }),
      () => headrace.identify("account-1", {}, unknown),
    ]) {
      assert.throws(call, { name: "TypeError", message });
    }
    for (const [field, hint] of /** @type {const} */ ([
      ["userId", 'did you mean "profileId"?'],
      ["ipAddress", 'did you mean "ip"?'],
      ["user_agent", 'did you mean "userAgent"?'],
      ["timestmap", 'did you mean "timestamp"?'],
      ["description", "the fields are timestamp, eventId, websiteId, anonymousId, sessionId, path, url, ip, userAgent, profileId, namespace, source"],
    ])) {
      const fields = /** @type {any} */ ({ [field]: "x" });
      assert.throws(() => headrace.track("signup", {}, fields), { name: "TypeError", message: `unknown field "${field}": ${hint}` });
    }
    headrace.track("signup", {}, /** @type {any} */ ({ plan: undefined }));
    assert.equal(headrace.stats().pending, 1);
  }));

test("what is missing in a call is named", () =>
  withService(async ({ client }) => {
    const headrace = /** @type {any} */ (client());
    for (const [call, message] of /** @type {[() => void, string][]} */ ([
      [() => headrace.trackMany({ name: "one" }), "events must be an array"],
      [() => headrace.trackMany([null]), "an event must be an object with a name"],
      [() => headrace.trackMany(["one"]), "an event must be an object with a name"],
      [() => headrace.vitals(), "a web vital must be an object"],
      [() => headrace.identify(undefined, { plan: "pro" }), "the profile id must be a string that is not empty"],
      [() => headrace.identify(17), "the profile id must be a string that is not empty"],
      [() => headrace.identify(""), "the profile id must be a string that is not empty"],
    ])) {
      assert.throws(call, { name: "TypeError", message });
    }
    assert.equal(headrace.stats().pending, 0);
  }));

test("whatever was thrown becomes an error report, with the stacks of its causes", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    for (const thrown of [new Error("outer", { cause: new RangeError("inner") }), "a text", null, { message: "a report", level: "warning" }]) headrace.errors(thrown);
    await headrace.flush();
    const items = received.flatMap(({ items }) => items);
    assert.deepEqual(items.map(({ message, level }) => [message, level]), [["outer", undefined], ["a text", undefined], ["Thrown: null", undefined], ["a report", "warning"]]);
    assert.match(items[0].stack, /^Error: outer\n[^]*\nCaused by: RangeError: inner\n/);
  }));

test("the report of an error that stands for several has them all", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    const refused = new AggregateError([new Error("refused by ::1"), new TypeError("refused by 127.0.0.1")]);
    headrace.errors(refused);
    headrace.errors(new AggregateError([new Error("inner", { cause: refused }), "a text"], "named", { cause: new RangeError("cause") }));
    headrace.errors(Object.assign(new Error("of a form"), { errors: { name: "is missing" } }));
    await headrace.flush();
    const items = received.flatMap(({ items }) => items);
    assert.deepEqual(
      items.map(({ message, stack }) => [message, stack.split("\n").filter((/** @type {string} */ line) => !line.startsWith("    at "))]),
      [
        ["refused by ::1; refused by 127.0.0.1", ["AggregateError", "One of its errors: Error: refused by ::1", "One of its errors: TypeError: refused by 127.0.0.1"]],
        ["named", [
          "AggregateError: named",
          "One of its errors: Error: inner",
          "Caused by: AggregateError",
          "One of its errors: Error: refused by ::1",
          "One of its errors: TypeError: refused by 127.0.0.1",
          "Caused by: RangeError: cause",
        ]],
        ["of a form", ["Error: of a form"]],
      ],
    );
  }));

test("a field that is undefined or null does not replace a default", () =>
  withService(async ({ client, received }) => {
    const headrace = /** @type {any} */ (client());
    headrace.errors(new Error("broken"), { path: undefined, stack: null });
    headrace.vitals({ metricName: "LCP", metricValue: 1, path: null });
    await headrace.flush();
    assert.deepEqual(received.flatMap(({ items }) => items.map(({ path, stack }) => [path, typeof stack])), [["", "string"], ["", "undefined"]]);
  }));

test("fields that are null are none", () =>
  withService(async ({ client, received }) => {
    const headrace = /** @type {any} */ (client());
    headrace.track("one", null, null);
    headrace.errors("broken", null);
    headrace.identify("account-1", null, null);
    assert.equal(await headrace.flush(), true);
    assert.deepEqual(received.map(({ path }) => path.split("?")[0]), ["/track", "/errors", "/identify"]);
  }));

test("an error of another realm, and one whose fields are no texts, is reported", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    const foreign = runInNewContext('new TypeError("foreign")');
    for (const thrown of [foreign, Object.assign(new Error("numbered"), { name: 42 }), Object.create(null)]) headrace.errors(thrown);
    await headrace.flush();
    const items = received.flatMap(({ items }) => items);
    assert.deepEqual(
      items.map(({ message, errorType, stack }) => [message, errorType, typeof stack]),
      [["foreign", "TypeError", "string"], ["numbered", "42", "string"], ["Thrown: [object Object]", undefined, "undefined"]],
    );
  }));

test("a thrown object is reported without what is no field of a report", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    const circular = { message: "circular", level: "warning", lineno: 7, colno: "7", stack: {}, big: 1n, eventId: 5, timestamp: new Date(NaN) };
    headrace.errors(Object.assign(circular, { circular }));
    headrace.errors({ message: "of another level", level: "critical" });
    headrace.errors({ message: "with a getter", get stack() { throw new Error("in the getter"); } });
    headrace.errors(Object.defineProperty(new Error("without a cause"), "cause", { get() { throw new Error("in the getter"); } }));
    await headrace.flush();
    assert.deepEqual(
      received.flatMap(({ items }) => items.map(({ timestamp, eventId, websiteId, stack, ...item }) => [item, typeof stack])),
      [
        [{ path: "", message: "circular", level: "warning", lineno: 7 }, "undefined"],
        [{ path: "", message: "of another level" }, "undefined"],
        [{ path: "", message: "with a getter" }, "undefined"],
        [{ path: "", message: "without a cause", errorType: "Error" }, "string"],
      ],
    );
  }));

test("a report has no texts that the service refuses", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    headrace.errors(Object.assign(new Error("cut \ud83d, nul \0, \u{1f600}"), { name: "N".repeat(200), stack: undefined }), { path: "/".repeat(3000) });
    await headrace.flush();
    const { message, errorType, path } = received[0]?.items[0];
    assert.deepEqual([message, errorType, path], ["cut \ufffd, nul \ufffd, \u{1f600}", "N".repeat(128), "/".repeat(2048)]);
  }));

test("a query returns its rows, and its refusal is an error with code and pause", () =>
  withService(async (world) => {
    world.answers = () => ({ status: 200, body: { success: true, data: [{ n: 1 }], meta: {} } });
    const headrace = world.client();
    assert.deepEqual(await headrace.query({ query: { table: "events" } }), [{ n: 1 }]);
    assert.equal(world.received[0]?.path, "/v1/query/custom?website_id=web_1");
    world.answers = () => ({ status: 429, body: { success: false, error: "Rate limit exceeded", code: "RATE_LIMITED" }, headers: { "Retry-After": "7" } });
    await assert.rejects(headrace.query({}), (error) => {
      assert.ok(error instanceof QueryFailed);
      assert.deepEqual([error.name, error.message, error.status, error.code, error.retryAfterMs], ["QueryFailed", "Rate limit exceeded", 429, "RATE_LIMITED", 7000]);
      return true;
    });
  }));

test("a query without a body is refused by the service", () =>
  withService(async (world) => {
    world.answers = () => ({ status: 400, body: { success: false, error: "Invalid request body: it must be an object, not null", code: "INVALID_BODY" } });
    await assert.rejects(world.client().query(/** @type {any} */ (undefined)), {
      name: "QueryFailed",
      status: 400,
      message: "Invalid request body: it must be an object, not null",
    });
    assert.deepEqual(world.received.map(({ items }) => items), [[null]]);
  }));

test("a query that nothing answers says why", () =>
  withService(async (world) => {
    world.answers = () => "reset";
    await assert.rejects(world.client().query({}), { name: "QueryFailed", status: 0, message: /^no answer: (ECONNRESET|UND_ERR_SOCKET)$/ });
  }));

test("a client without address or credentials is refused", () => {
  assert.throws(() => new Headrace({ url: "", key: "hr_x" }), /no address is given/);
  for (const url of ["nowhere", "localhost:8000", "ftp://shop.example", "http://u:p@shop.example", "http://shop.example?a=b", "http://shop.example/#a"]) {
    assert.throws(() => new Headrace({ url, key: "hr_x" }), /no address of a service/);
  }
  assert.throws(() => new Headrace({ url: "http://127.0.0.1:1", key: "", website: "" }), {
    name: "HeadraceError",
    message: "neither a key nor a website is given: set key or HEADRACE_API_KEY, or website or HEADRACE_WEBSITE_ID",
  });
  for (const key of ["hr_ä", "hr_a\nb", "hr_a b"]) {
    assert.throws(() => new Headrace({ url: "http://127.0.0.1:1", key }), /characters that no key has/);
  }
});

test("an option of the wrong type is named when the client is made", () => {
  const given = { url: "http://127.0.0.1:1", key: "hr_x", website: "web_1" };
  for (const [option, value, message] of /** @type {const} */ ([
    ["url", new URL(given.url), "url must be a string"],
    ["key", 7, "key must be a string"],
    ["website", 7, "website must be a string"],
    ["website", "My website", "the website has blanks or too many characters: give its id"],
    ["directory", 7, "directory must be a string"],
    ["timeoutMs", NaN, "timeoutMs must be a number, 0 or more"],
    ["exitTimeoutMs", "2000", "exitTimeoutMs must be a number, 0 or more"],
    ["lingerMs", -1, "lingerMs must be a number, 0 or more"],
    ["maxOutboxBytes", NaN, "maxOutboxBytes must be a number, 0 or more"],
    ["sync", "false", "sync must be true or false"],
    ["onRefused", "log", "onRefused must be a function"],
  ])) {
    assert.throws(() => new Headrace(/** @type {any} */ ({ ...given, [option]: value })), { name: "HeadraceError", message });
  }
});

test("an empty HEADRACE_OUTBOX is none", () =>
  withService(async ({ client, directory }) => {
    const { HEADRACE_OUTBOX } = process.env;
    const folder = process.cwd();
    process.chdir(directory);
    process.env["HEADRACE_OUTBOX"] = "";
    try {
      client({ directory: undefined });
      assert.deepEqual(readdirSync(directory), [".headrace-outbox"]);
    } finally {
      process.chdir(folder);
      if (HEADRACE_OUTBOX === undefined) delete process.env["HEADRACE_OUTBOX"];
      else process.env["HEADRACE_OUTBOX"] = HEADRACE_OUTBOX;
    }
  }));

test("an unknown option is refused, and the nearest one is named", () => {
  const given = { url: "http://127.0.0.1:1", key: "hr_x" };
  for (const [option, meant] of /** @type {const} */ ([
    ["apiKey", "key"],
    ["api_key", "key"],
    ["apiUrl", "url"],
    ["baseURL", "url"],
    ["endpoint", "url"],
    ["websiteId", "website"],
    ["clientId", "website"],
    ["timeout", "timeoutMs"],
    ["linger", "lingerMs"],
    ["direcotry", "directory"],
    ["outbox", "directory"],
    ["onRefuse", "onRefused"],
  ])) {
    const message = `unknown option "${option}": did you mean "${meant}"?`;
    assert.throws(() => new Headrace(/** @type {any} */ ({ ...given, [option]: "x" })), { name: "HeadraceError", message });
  }
  assert.throws(() => new Headrace(/** @type {any} */ ({ ...given, debug: true })), {
    name: "HeadraceError",
    message:
      'unknown option "debug": the options are url, key, website, directory, sync, maxOutboxBytes, lingerMs, timeoutMs, exitTimeoutMs, onRefused',
  });
});

test("options that are no object are refused", () => {
  for (const given of [null, "hr_x", 7, ["hr_x"]]) {
    assert.throws(() => new Headrace(/** @type {any} */ (given)), {
      name: "HeadraceError",
      message: 'the options must be an object, such as { key: "hr_..." }',
    });
  }
});

test("neither an error nor a printed client shows a password or a key", () =>
  withService(async ({ client, url: address }) => {
    for (const [url, shown] of /** @type {const} */ ([
      ["https://me:pa55@shop.example/a", "https://***@shop.example/a is no address of a service: it has a user name or password"],
      ["https://me:pa55/7@shop.example", "https://***@shop.example is no address of a service: it is no URL"],
      ["me:pa55@shop.example", "***@shop.example is no address of a service: it begins with http:// or https://"],
      ["https://me:p@55@shop.example?a=b", "https://***@shop.example?*** is no address of a service: it has a user name or password"],
      ["https://shop.example?key=pa55", "https://shop.example?*** is no address of a service: it has a query or a fragment"],
    ])) {
      assert.throws(() => new Headrace({ url, key: "hr_x" }), (error) => {
        assert.deepEqual([/** @type {Error} */ (error).message, inspect(error).includes("pa55")], [shown, false]);
        return true;
      });
    }
    assert.doesNotMatch(inspect(client({ url: address, key: "hr_secret" }), { depth: 9, showHidden: true }), /secret/);
  }));

test("blanks around the address, the key and the website do not matter", () =>
  withService(async (world) => {
    const headrace = world.client({ url: ` ${world.url}/ `, key: "hr_test\n", website: "web_1\n" });
    headrace.track("signup");
    assert.equal(await headrace.flush(), true);
    assert.deepEqual(world.received.map(({ path, headers }) => [path, headers.authorization]), [["/track?website_id=web_1", "Bearer hr_test"]]);
  }));

test("Retry-After is seconds or a date, and at most an hour", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const values = ["7", "Thu, 01 Jan 2026 00:00:09 GMT", "Thu, 01 Jan 2020 00:00:00 GMT", "soon", "999999", "", null];
  assert.deepEqual(values.map((value) => readRetryAfter(value, now)), [7000, 9000, 0, 0, 3_600_000, 0, 0]);
});

test("every reply has one verdict", () => {
  const verdict = (/** @type {number} */ count, /** @type {number} */ status, /** @type {any} */ body = { status: "error", code: "X" }) => {
    const { kind, messages = undefined } = /** @type {any} */ (judge(count, { status, body, retryAfterMs: 0 }));
    return kind === "refuse" ? (messages ? [...messages.keys()] : "all") : kind;
  };
  assert.equal(verdict(2, 200, { status: "success" }), "accepted");
  assert.deepEqual([0, 200, 401, 408, 429, 500, 502, 503, 504].map((status) => verdict(2, status)), Array(9).fill("retry"));
  assert.deepEqual([400, 403, 404, 415].map((status) => verdict(1, status, null)), Array(4).fill("retry"));
  assert.deepEqual([400, 403, 404, 415].map((status) => verdict(1, status, { status: "error", message: "m" })), Array(4).fill("retry"));
  assert.deepEqual([400, 403, 404, 415].map((status) => verdict(2, status)), Array(4).fill("all"));
  assert.deepEqual([verdict(2, 413), verdict(1, 413)], ["split", "all"]);
  const invalid = (/** @type {unknown} */ errors) => ({ status: "error", code: "INVALID_BODY", errors });
  assert.deepEqual(verdict(3, 400, invalid([{ index: 2 }, { index: 0 }, { index: 2 }, { index: 9 }, {}])), [2, 0]);
  assert.deepEqual([verdict(3, 400, invalid(undefined)), verdict(1, 400, invalid([]))], ["split", "all"]);
});
