/** Requests to the service: JSON, gzip, one deadline. */

import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** @typedef {import("./verdict.js").Reply} Reply */

/** Below this gzip saves nothing worth its time. */
const GZIP_FROM_BYTES = 1024;
const MAX_RETRY_AFTER_MS = 3_600_000;
/** An error document of the service has a few KiB. */
export const MAX_ITEMS_REPLY_BYTES = 1024 * 1024;
/** A timer with more ends at once, with a warning. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
export const USER_AGENT = "headrace-node/0.1.0";
const compress = promisify(gzip);

/** @typedef {{url: string, key: string, timeoutMs: number}} Service */

/**
 * Send a body with POST. Never rejects: status 0 means that no whole answer came.
 * @param {Service} service
 * @param {string} path with its query, beginning with a slash
 * @param {string} json
 * @param {AbortController} [abort] ends the request; a request without one ends by its deadline
 * @param {number} [maxReplyBytes] a larger body of the answer counts as none
 * @returns {Promise<Reply & {error: unknown}>}
 */
export async function post({ url, key, timeoutMs }, path, json, abort = new AbortController(), maxReplyBytes = Infinity) {
  const end = () => abort.abort(new DOMException("no whole answer in time", "TimeoutError"));
  const timer = setTimeout(end, Math.min(timeoutMs, MAX_TIMER_MS));
  timer.unref();
  try {
    const body = await encode(json);
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        ...(key && { Authorization: `Bearer ${key}` }),
        ...(typeof body !== "string" && { "Content-Encoding": "gzip" }),
      },
      body,
      redirect: "error",
      signal: abort.signal,
    });
    const retryAfterMs = readRetryAfter(response.headers.get("Retry-After"), Date.now());
    return { status: response.status, body: parse(await textOf(response, maxReplyBytes)), retryAfterMs, error: null };
  } catch (error) {
    return { status: 0, body: null, retryAfterMs: 0, error };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Return why no whole answer came: `fetch failed` alone says nothing.
 * @param {unknown} error
 * @returns {string}
 */
export function reasonOfFailure(error) {
  const cause = /** @type {{cause?: {code?: string, message?: string}} | null} */ (error)?.cause;
  return cause?.code ?? cause?.message ?? String(error);
}

/**
 * Read the body of an answer; "" where it is too large.
 * @param {Response} response
 * @param {number} maxBytes
 */
async function textOf({ body }, maxBytes) {
  /** @type {Uint8Array[]} */
  const chunks = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > maxBytes) return ""; // which ends the request
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** @param {string} json */
async function encode(json) {
  return Buffer.byteLength(json) < GZIP_FROM_BYTES ? json : compress(json);
}

/**
 * @param {string} text
 * @returns {Record<string, unknown> | null}
 */
function parse(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * Return the milliseconds that a `Retry-After` demands, seconds or a date, at most an hour.
 * @param {string | null} value
 * @param {number} nowMs
 */
export function readRetryAfter(value, nowMs) {
  if (!value) return 0;
  const pauseMs = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Math.min(Math.max(pauseMs, 0) || 0, MAX_RETRY_AFTER_MS);
}
