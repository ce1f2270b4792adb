import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { recordErrors, recordRequests } from "../src/index.js";
import { refusal, withService } from "./service.js";

const CLIENT = new URL("../src/index.js", import.meta.url).href;

/**
 * Run a program with the client `headrace`; resolves to its exit code and standard error.
 * @param {string} url
 * @param {string} directory
 * @param {string} code
 * @param {string[]} command that runs Node.js
 */
async function run(url, directory, code, command = [process.execPath]) {
  const options = JSON.stringify({ url, directory, key: "hr_test", website: "web_1" });
  const program = `import { Headrace, captureExceptions } from ${JSON.stringify(CLIENT)};\nconst headrace = new Headrace(${options});\n${code}`;
  const [executable, ...rest] = /** @type {[string, ...string[]]} */ (command);
  const child = spawn(executable, [...rest, "--input-type=module", "--eval", program], { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.on("data", (data) => (errors += data));
  const [exitCode] = await once(child, "close");
  return { exitCode, errors };
}

test("a program that ends sends what is left, and is not kept alive otherwise", () =>
  withService(async ({ url, directory, received }) => {
    assert.deepEqual(await run(url, directory, 'headrace.track("last")'), { exitCode: 0, errors: "" });
    assert.deepEqual(received.map(({ items }) => items.map(({ name }) => name)), [["last"]]);
  }));

test("what a program could not send before its end is sent by the next one", () =>
  withService(async (world) => {
    world.answers = () => refusal(503, "UNAVAILABLE");
    await run(world.url, world.directory, 'headrace.track("last"); process.exit(3)');
    world.answers = () => undefined;
    const headrace = world.client();
    assert.equal(headrace.stats().pending, 1);
    assert.equal(await headrace.flush(), true);
  }));

test("items that cannot be written leave no files behind, and cost none of those around them", { skip: process.platform === "win32" }, () =>
  withService(async ({ url, directory, received }) => {
    // A limit of 512 or 1,024 bytes for a file: writes fail as they do on a full disk.
    const limited = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", process.execPath];
    const code = `
      import { readdirSync } from "node:fs";
      const thrown = [];
      headrace.track("before");
      for (let n = 0; n < 50; n++) {
        try {
          headrace.track("too long", { text: "x".repeat(2000) });
        } catch (error) {
          thrown.push(error.name);
        }
      }
      headrace.track("after");
      console.error(JSON.stringify([thrown, readdirSync(${JSON.stringify(directory)}, { recursive: true }).filter((name) => name.endsWith(".log")).length]));
      await headrace.close();`;
    const { exitCode, errors } = await run(url, directory, code, limited);
    assert.deepEqual([exitCode, JSON.parse(errors)], [0, [Array(50).fill("OutboxUnavailable"), 2]]);
    assert.deepEqual(received.flatMap(({ items }) => items.map(({ name }) => name)), ["before", "after"]);
  }));

for (const [what, end] of [
  ["a program that ends", "setTimeout(() => {}, 10)"],
  ["a program that closes its client", "await headrace.close(100)"],
]) {
  test(`${what} does not wait for a service that accepts a request and does not answer it`, () =>
    withService(async (world) => {
      world.answers = () => "silence";
      const startedMs = performance.now();
      assert.deepEqual(await run(world.url, world.directory, `headrace.track("last"); ${end}`), { exitCode: 0, errors: "" });
      assert.ok(performance.now() - startedMs < 15_000); // the deadline of a request is later
      world.answers = () => undefined;
      assert.equal(await world.client().flush(), true);
      assert.deepEqual(new Set(world.received.flatMap(({ items }) => items.map(({ name }) => name))), new Set(["last"]));
    }));
}

for (const [what, code] of [
  ["an uncaught exception", 'throw new TypeError("no cart")'],
  ["an unhandled rejection", 'await Promise.resolve(); Promise.reject(new TypeError("no cart")); setTimeout(() => {}, 1000)'],
]) {
  test(`${what} ends the program as ever, and is sent by the next one`, () =>
    withService(async ({ url, directory, client, received }) => {
      const { exitCode, errors } = await run(url, directory, `captureExceptions(headrace, { path: "/job" });\n${code}`);
      assert.equal(exitCode, 1);
      assert.match(errors, /TypeError: no cart/);
      await client().flush();
      const found = received.flatMap(({ path, items }) => items.map(({ message, errorType, level, path: place }) => [path, message, errorType, level, place]));
      assert.deepEqual(found, [["/errors?website_id=web_1", "no cart", "TypeError", "fatal", "/job"]]);
    }));
}

test("requests are recorded with path, status and duration, without query and address", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    const record = recordRequests(headrace, { filter: ({ url }) => url !== "/health", fields: () => ({ anonymousId: "anon_1" }) });
    const server = createServer((request, response) => {
      record(request, response);
      response.statusCode = 201;
      response.end("ok");
    });
    server.listen(0);
    await once(server, "listening");
    const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
    for (const path of ["/orders?token=secret", "/health"]) await (await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST" })).text();
    server.close();
    server.closeAllConnections();
    while (!headrace.stats().pending && !received.length) await new Promise((resolve) => setTimeout(resolve, 5));
    await headrace.flush();
    const [{ properties, path, anonymousId, name }, ...rest] = received.flatMap(({ items }) => items);
    assert.deepEqual(rest, []);
    assert.ok(properties.duration_ms > 0);
    assert.deepEqual({ ...properties, duration_ms: 0 }, { method: "POST", status: 201, duration_ms: 0 });
    assert.deepEqual([name, path, anonymousId], ["http_request", "/orders", "anon_1"]);
    assert.doesNotMatch(JSON.stringify(received.map(({ items }) => items)), /secret|127\.0\.0\.1/);
  }));

test("an error of a route is recorded and passed on", () =>
  withService(async ({ client, received }) => {
    const headrace = client();
    const thrown = new Error("no stock");
    /** @type {unknown[]} */
    const passed = [];
    const request = /** @type {any} */ ({ originalUrl: "/orders/7?x=1" });
    recordErrors(headrace)(thrown, request, /** @type {any} */ ({}), (error) => passed.push(error));
    await headrace.flush();
    assert.deepEqual(passed, [thrown]);
    assert.deepEqual(received.flatMap(({ items }) => items.map(({ message, path }) => [message, path])), [["no stock", "/orders/7"]]);
  }));
