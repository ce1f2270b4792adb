/** What becomes of the items of a request, given its reply. */

/**
 * `status` is 0 where nothing answered; `body` is null where it was no JSON object.
 * @typedef {{status: number, body: Record<string, unknown> | null, retryAfterMs: number}} Reply
 */

/**
 * - accepted: all items are stored, or were before
 * - retry: nobody knows, or the service has no room: send the same again
 * - split: too large for one request, or one of them is invalid: send less
 * - refuse: those at the indexes of `messages` are refused for good, or all of them (null);
 *   `messages` says what is wrong with each
 * @typedef {{kind: "accepted"} | {kind: "retry"} | {kind: "split"} | {kind: "refuse", messages: Map<number, string> | null}} Verdict
 */

/** @type {Verdict} */ const ACCEPTED = { kind: "accepted" };
/** @type {Verdict} */ const RETRY = { kind: "retry" };
/** @type {Verdict} */ const SPLIT = { kind: "split" };
/** @type {Verdict} */ const REFUSE_ALL = { kind: "refuse", messages: null };

const FINAL = new Set([400, 403, 404, 415]);
const INVALID_ITEMS = "INVALID_BODY";

/**
 * Judge the reply to a request with `count` items.
 *
 * A 2xx without the service's own body is an answer of something else on the way, and so is a 400,
 * 403, 404 or 415: neither may cost an event. 401 is retried, because a key can be replaced.
 * @param {number} count
 * @param {Reply} reply
 * @returns {Verdict}
 */
export function judge(count, { status, body }) {
  if (status >= 200 && status < 300) return body?.["status"] === "success" ? ACCEPTED : RETRY;
  if (status === 413) return count > 1 ? SPLIT : REFUSE_ALL;
  if (!FINAL.has(status) || body?.["status"] !== "error" || !body["code"]) return RETRY;
  return status === 400 && body["code"] === INVALID_ITEMS ? judgeInvalid(count, body) : REFUSE_ALL;
}

/**
 * One invalid item refuses its whole batch; the reply names those it found, up to fifty faults.
 * @param {number} count
 * @param {Record<string, unknown>} body
 * @returns {Verdict}
 */
function judgeInvalid(count, body) {
  const faults = Array.isArray(body["errors"]) ? body["errors"] : [];
  /** @type {Map<number, string>} */
  const messages = new Map();
  for (const { index, field, message } of faults.filter(Boolean)) {
    if (!Number.isInteger(index) || index < 0 || index >= count) continue;
    const before = messages.get(index);
    messages.set(index, `${before ? `${before}; ` : ""}${field}: ${message}`);
  }
  if (messages.size) return { kind: "refuse", messages };
  return count === 1 ? REFUSE_ALL : SPLIT;
}
