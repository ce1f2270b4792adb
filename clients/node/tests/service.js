/** A service for tests: it answers as a test sets it, and keeps what it accepted. */

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Headrace } from "../src/index.js";

/** @typedef {{path: string, headers: import("node:http").IncomingHttpHeaders, items: any[]}} Received */
/**
 * What to answer: a status, a body and headers; undefined is a success. `"reset"` cuts the connection,
 * `"silence"` leaves it open.
 * @typedef {{status: number, body?: unknown, headers?: Record<string, string>} | "reset" | "silence" | undefined} Answer
 */

/** @type {Exclude<Answer, string | undefined>} */
const SUCCESS = { status: 200, body: { status: "success", type: "custom_event", count: 1 } };

/**
 * Return an error of the service.
 * @param {number} status
 * @param {string} code
 * @param {object} [more]
 */
export const refusal = (status, code, more = {}) => ({ status, body: { status: "error", message: code.toLowerCase(), code, requestId: "r", ...more } });

/**
 * Run a test with a service, a directory, and clients of both that are closed afterwards.
 * @param {(world: {received: Received[], answers: (request: Received) => Answer, url: string, directory: string,
 *   client: (options?: import("../src/client.js").Options) => Headrace}) => Promise<void>} test
 */
export async function withService(test) {
  const directory = mkdtempSync(join(tmpdir(), "headrace-"));
  /** @type {Headrace[]} */
  const clients = [];
  /** @type {Parameters<typeof test>[0]} */
  const world = {
    received: [],
    answers: () => undefined,
    url: "",
    directory,
    client: (options) => {
      const client = new Headrace({ url: world.url, key: "hr_test", website: "web_1", directory, lingerMs: 5, ...options });
      clients.push(client);
      return client;
    },
  };
  const server = createServer(async (request, response) => {
    const received = await receive(request);
    world.received.push(received);
    const answer = world.answers(received) ?? SUCCESS;
    if (answer === "silence") return;
    if (answer === "reset") return void request.socket.destroy();
    response.writeHead(answer.status, { "Content-Type": "application/json", ...answer.headers });
    response.end(JSON.stringify(answer.body ?? null));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  world.url = `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
  try {
    await test(world);
  } finally {
    await Promise.all(clients.map((client) => client.close(0)));
    server.close();
    server.closeAllConnections();
    rmSync(directory, { recursive: true });
  }
}

/**
 * @param {import("node:http").IncomingMessage} request
 * @returns {Promise<Received>}
 */
async function receive(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes;
  const body = JSON.parse(text.toString());
  return { path: request.url ?? "", headers: request.headers, items: Array.isArray(body) ? body : [body] };
}
