/** Requests of `node:http` and Express as events. */

/** @typedef {import("./client.js").Headrace} Headrace */
/** @typedef {import("node:http").IncomingMessage & {originalUrl?: string, route?: {path?: unknown}, baseUrl?: string}} Request */
/** @typedef {import("node:http").ServerResponse} Response */
/** @typedef {(error?: unknown) => void} Next */

/**
 * @typedef {object} RequestOptions
 * @property {string} [name] the name of the events; `http_request` by default
 * @property {(request: Request, response: Response) => boolean} [filter] which requests are recorded; all by default
 * @property {(request: Request, response: Response) => import("./items.js").EventFields} [fields] further
 *   fields, such as `anonymousId`; address and User-Agent of the visitor are not recorded without it
 */

/**
 * Return a middleware that records each request when its response is finished or cut off: its
 * method, path without the query, route where Express knows it, status and duration. It never fails
 * and never delays a request.
 * @param {Headrace} client
 * @param {RequestOptions} [options]
 */
export function recordRequests(client, { name = "http_request", filter = () => true, fields = () => ({}) } = {}) {
  return (/** @type {Request} */ request, /** @type {Response} */ response, /** @type {Next | undefined} */ next = undefined) => {
    const started = performance.now();
    const path = pathOf(request);
    response.once("close", () => {
      quietly(() => {
        if (!filter(request, response)) return;
        const properties = {
          method: request.method,
          ...routeOf(request),
          status: response.statusCode,
          duration_ms: Math.round((performance.now() - started) * 1000) / 1000,
          ...(!response.writableFinished && { aborted: true }),
        };
        client.track(name, properties, { path, ...fields(request, response) });
      });
    });
    next?.();
  };
}

/**
 * Return an Express error handler that records the error and passes it on.
 * @param {Headrace} client
 */
export function recordErrors(client) {
  return (/** @type {unknown} */ error, /** @type {Request} */ request, /** @type {Response} */ _response, /** @type {Next} */ next) => {
    quietly(() => client.errors(error, { path: pathOf(request) }));
    next(error);
  };
}

/** @param {Request} request */
const pathOf = (request) => /** @type {string} */ ((request.originalUrl ?? request.url ?? "").split("?", 1)[0]).slice(0, 2048);

/** @param {Request} request */
function routeOf({ route, baseUrl = "" }) {
  return typeof route?.path === "string" ? { route: baseUrl + route.path } : {};
}

/**
 * A full outbox must not fail a request that has nothing to do with it.
 * @param {() => void} record
 */
function quietly(record) {
  try {
    record();
  } catch (error) {
    process.emitWarning(`a request was not recorded: ${error}`, "HeadraceWarning");
  }
}
