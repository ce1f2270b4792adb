/** Calls of the service's API. Every failure is an `ApiError`, but for an abort. */

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

/**
 * Send one request and return the body of its response.
 * @param {string} method
 * @param {string} path
 * @param {{parameters?: Parameters, body?: unknown, signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
export async function call(method, path, { parameters = {}, body, signal } = {}) {
  const headers = /** @type {Record<string, string>} */ ({ Accept: "application/json" });
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await send(urlOf(path, parameters), {
    method,
    headers,
    signal,
    credentials: "same-origin",
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const reply = response.status === 204 ? null : await jsonOf(response);
  if (response.status === 401 && path !== "/v1/session") for (const callback of onSignedOut) callback();
  if (!response.ok) throw failure(response, reply);
  return reply;
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
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError("The service does not answer", { status: 0 });
  }
}

/** @param {Response} response */
async function jsonOf(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    return null;
  }
}

/** @param {Response} response @param {any} reply */
function failure(response, reply) {
  return new ApiError(reply?.error ?? reply?.message ?? `The service answers ${response.status}`, {
    status: response.status,
    code: reply?.code,
    requestId: reply?.requestId,
    retryAfterS: Number(response.headers.get("Retry-After")) || 0,
    errors: reply?.errors,
  });
}
