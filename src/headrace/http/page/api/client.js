/** Calls of the service's API. Every failure is an `ApiError`, but for an abort. */

import { parseJson } from "../state/json.js";

/** @typedef {Record<string, string | number | undefined>} Parameters */
/** @typedef {Record<string, any>} Row */

export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {{status: number, code?: string, requestId?: string, retryAfterS?: number, errors?: {field: string, message: string}[]}} facts
   *   `status` is 0 where no response came.
   */
  constructor(message, { status, code = "", requestId = "", retryAfterS = 0, errors = [] }) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.retryAfterS = retryAfterS;
    this.errors = errors;
  }
}

/** @type {Set<() => void>} */
const onSignedOut = new Set();

/** Run `callback` when a call is refused for want of credentials. @param {() => void} callback */
export function whenSignedOut(callback) {
  onSignedOut.add(callback);
}

/** A call was refused for want of credentials. */
export function signedOut() {
  for (const callback of onSignedOut) callback();
}

/**
 * Send one request and return the body of its response. Paths, what they take and what they answer
 * are those of the OpenAPI document.
 * @template {import("./calls.js").Path} P
 * @template {import("./calls.js").Method} M
 * @param {M} method
 * @param {P} path
 * @param {import("./calls.js").Options<P, M>} [options]
 * @returns {Promise<import("./calls.js").Answer<P, M>>}
 */
export async function call(method, path, options = {}) {
  const response = await request(method, path, options, "application/json");
  return /** @type {any} */ (response.status === 204 ? null : await whole(jsonOf(response, options.exact)));
}

/**
 * Send one request and return its response as a file of another media type.
 * @template {import("./calls.js").Path} P
 * @template {import("./calls.js").Method} M
 * @param {M} method
 * @param {P} path
 * @param {import("./calls.js").Options<P, M>} options
 * @param {string} mediaType
 */
export async function download(method, path, options, mediaType) {
  return whole((await request(method, path, options, mediaType)).blob());
}

/** @param {string} method @param {string} path @param {{path?: Record<string, string>, parameters?: Parameters, body?: unknown, signal?: AbortSignal}} options @param {string} accept */
async function request(method, path, { path: names = {}, parameters = {}, body, signal }, accept) {
  const headers = /** @type {Record<string, string>} */ ({ Accept: accept });
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const named = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name] ?? ""));
  const response = await send(urlOf(named, parameters), {
    method,
    headers,
    signal,
    credentials: "same-origin",
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.status === 401 && path !== "/v1/session") signedOut();
  if (!response.ok) throw failure(response, await refusalOf(response));
  return response;
}

/** A path with its query. @param {string} path @param {Parameters} parameters */
export function urlOf(path, parameters) {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const query = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]));
  return pairs.length ? `${path}?${query}` : path;
}

/** @param {string} url @param {RequestInit} options */
async function send(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError("The service does not answer", { status: 0 });
  }
}

/** A body up to its end: the connection may break off before, and a proxy may answer with a page of its own. @template T @param {Promise<T>} body @returns {Promise<T>} */
async function whole(body) {
  try {
    return await body;
  } catch (error) {
    if (isAbort(error)) throw error;
    throw error instanceof SyntaxError ? new ApiError("This is no answer of the service", { status: 502 }) : new ApiError("The service does not answer", { status: 0 });
  }
}

/** @param {Response} response @param {"all" | readonly string[]} [exact] */
async function jsonOf(response, exact = []) {
  return exact.length ? parseJson(await response.text(), exact === "all" ? undefined : exact) : response.json();
}

/** What the service says of a refusal, null where something else refuses. @param {Response} response */
async function refusalOf(response) {
  try {
    return await response.json();
  } catch (error) {
    if (isAbort(error)) throw error;
    return null;
  }
}

/** @param {unknown} error */
function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** @param {Response} response @param {any} reply */
function failure(response, reply) {
  return new ApiError(reply?.error ?? reply?.message ?? `The service answers ${response.status}`, {
    status: response.status,
    code: reply?.code,
    requestId: reply?.requestId,
    retryAfterS: secondsToWait(response.headers),
    errors: reply?.errors,
  });
}

/** What `Retry-After` asks for, a number or a date; 0 without one. @param {Headers} headers */
function secondsToWait(headers) {
  const text = headers.get("Retry-After") ?? "";
  const now = Date.parse(headers.get("Date") ?? "") || Date.now(); // clocks of browsers may be wrong
  const seconds = Number(text) || (Date.parse(text) - now) / 1000;
  return seconds > 0 ? Math.ceil(seconds) : 0;
}
