/**
 * Sends the items of an outbox: one request at a time, as often as needed.
 *
 * Items leave the outbox when the service has stored them or has refused them for good; the latter
 * are kept and counted. All timers let the process end: what is unsent then, the next one sends.
 */

import { MAX_TIMER_MS, reasonOfFailure } from "./transport.js";
import { judge } from "./verdict.js";

/** @typedef {import("../outbox/record.js").Item} Item */
/** @typedef {import("../outbox/outbox.js").Batch} Batch */
/** @typedef {import("./verdict.js").Reply} Reply */
/** @typedef {import("./refusals.js").Reason} Reason */
/** @typedef {import("./refusals.js").Refused} Refused */
/** Items of one endpoint and website, which one request can send. @typedef {Item[]} Group */

/**
 * @typedef {object} SenderOptions
 * @property {number} lingerMs how long the first item waits for others
 * @property {number} maxItems the most items of a request
 * @property {number} maxBytes the most bytes of a request before compression, but for a single item
 * @property {number} maxAgeMs how long an item is sent; the service knows ids for seven days
 * @property {number} minBackoffMs
 * @property {number} maxBackoffMs
 */

/**
 * @typedef {object} Parts
 * @property {import("../outbox/outbox.js").Outbox} outbox
 * @property {import("./refusals.js").Refusals} refusals
 * @property {(path: string, json: string) => Promise<Reply & {error: unknown}>} post
 * @property {(refused: Refused[]) => void} onRefused
 * @property {(problem: string) => void} onProblem told once for each failed attempt
 */

/** @type {Reason} */
const EXPIRED = { status: 0, code: "EXPIRED", message: "Not stored in time" };

export class Sender {
  /** The number of items that the service has stored. */
  sent = 0;
  /** The number of items that will never be stored. */
  refused = 0;
  #parts;
  #options;
  /** @type {NodeJS.Timeout | null} */
  #timer = null;
  #isSending = false;
  #isClosed = false;
  /** Until when the service asked not to be called, on the clock of `performance.now`. */
  #notBeforeMs = 0;
  #failures = 0;
  #flushes = 0;
  /**
   * What was read last, what of it is open, and whether nothing else was there.
   * @type {{batch: Batch, groups: Group[], isLast: boolean} | null}
   */
  #current = null;
  /** @type {Set<() => void>} called after each request, and at the end */
  #listeners = new Set();

  /**
   * @param {Parts} parts
   * @param {SenderOptions} options
   */
  constructor(parts, options) {
    this.#parts = parts;
    this.#options = options;
  }

  /** Send soon: something was appended. A pause after a failure is not shortened. */
  wake() {
    if (!this.#timer && !this.#isSending) this.#schedule(this.#options.lingerMs);
  }

  /**
   * Send at once. Resolve to true when all items that are there now are settled, or to false after
   * `timeoutMs`, or when the sender is closed.
   * @param {number} timeoutMs
   */
  async flush(timeoutMs) {
    const isDone = this.#parts.outbox.checkpoint();
    const deadlineMs = performance.now() + timeoutMs;
    this.#flushes++;
    if (!this.#isSending) this.#schedule(Math.max(0, this.#notBeforeMs - performance.now()));
    for (let leftMs; !isDone() && !this.#isClosed && (leftMs = deadlineMs - performance.now()) > 0; ) {
      await this.#nextRequest(Math.min(leftMs, MAX_TIMER_MS));
    }
    this.#flushes--;
    return isDone();
  }

  /** Send nothing more. A request that is on its way may still be answered. */
  close() {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    this.#notify();
  }

  /** @param {number} timeoutMs */
  #nextRequest(timeoutMs) {
    return new Promise((/** @type {(value: void) => void} */ resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#listeners.delete(end);
        resolve();
      };
      const timer = setTimeout(end, timeoutMs);
      this.#listeners.add(end);
    });
  }

  /** @param {number} delayMs */
  #schedule(delayMs) {
    if (this.#timer) clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#send(), delayMs);
    this.#timer.unref();
  }

  async #send() {
    this.#timer = null;
    this.#isSending = true;
    let pauseMs = 0;
    try {
      pauseMs = await this.#sendAll();
    } catch (error) {
      this.#parts.onProblem(String(error));
      pauseMs = this.#backoff(0);
    }
    this.#isSending = false;
    if (pauseMs) this.#schedule(pauseMs);
  }

  /** Send until nothing is left; return the milliseconds after which to go on, 0 for never. */
  async #sendAll() {
    while (!this.#isClosed) {
      this.#current ??= this.#read();
      if (!this.#current) return 0;
      const { batch, groups, isLast } = this.#current;
      const pauseMs = await this.#sendGroups(groups);
      if (this.#isClosed) return 0;
      if (!pauseMs) {
        this.#parts.outbox.settle(batch);
        this.#current = null;
      }
      this.#notify();
      if (pauseMs) return pauseMs;
      if (isLast && !this.#flushes) return this.#options.lingerMs;
    }
    return 0;
  }

  #notify() {
    for (const listener of [...this.#listeners]) listener();
  }

  #read() {
    const { outbox } = this.#parts;
    const batch = outbox.next(this.#options.maxItems, this.#options.maxBytes);
    return batch && { batch, groups: groupItems(batch.items), isLast: outbox.pending <= batch.items.length };
  }

  /**
   * Send groups in turn and take out those that are settled; return the pause after a failure.
   * @param {Group[]} groups
   */
  async #sendGroups(groups) {
    for (let next; (next = groups[0]); ) {
      const group = this.#withoutExpired(next);
      groups.splice(0, 1, ...(group.length ? [group] : []));
      if (!group.length) continue;
      const reply = await this.#parts.post(...requestOf(group));
      if (this.#isClosed) return 0;
      const verdict = judge(group.length, reply);
      if (verdict.kind === "retry") return this.#backoff(reply.retryAfterMs, reply);
      this.#failures = 0;
      groups.splice(0, 1, ...this.#settleGroup(group, verdict, reply));
    }
    return 0;
  }

  /** @param {Group} group */
  #withoutExpired(group) {
    const oldestMs = Date.now() - this.#options.maxAgeMs;
    const expired = group.filter(({ time }) => time < oldestMs);
    if (expired.length) this.#refuse(expired.map((item) => ({ item, reason: EXPIRED })));
    return expired.length ? group.filter(({ time }) => time >= oldestMs) : group;
  }

  /**
   * Count what is settled of a group; return what is left of it to be sent.
   * @param {Group} group
   * @param {import("./verdict.js").Verdict} verdict
   * @param {Reply} reply
   * @returns {Group[]}
   */
  #settleGroup(group, verdict, reply) {
    if (verdict.kind === "split") return halves(group);
    if (verdict.kind === "refuse") {
      const { messages } = verdict;
      const reason = reasonOf(reply);
      const isRefused = (/** @type {number} */ index) => messages?.has(index) ?? true;
      const refused = group.flatMap((item, index) => (isRefused(index) ? [{ item, reason: { ...reason, message: messages?.get(index) ?? reason.message } }] : []));
      this.#refuse(refused);
      const rest = group.filter((_, index) => !isRefused(index));
      return rest.length ? [rest] : [];
    }
    this.sent += group.length;
    return [];
  }

  /** @param {Refused[]} refused */
  #refuse(refused) {
    this.#parts.refusals.keep(refused);
    this.refused += refused.length;
    this.#parts.onRefused(refused);
  }

  /**
   * Return the pause after a failure: what the service asks for, or twice as long each time, and
   * up to half of it left to chance.
   * @param {number} retryAfterMs
   * @param {Reply & {error: unknown}} [reply]
   */
  #backoff(retryAfterMs, reply) {
    if (reply) this.#parts.onProblem(describe(reply));
    const { minBackoffMs, maxBackoffMs } = this.#options;
    const growingMs = Math.min(maxBackoffMs, minBackoffMs * 2 ** this.#failures++);
    this.#notBeforeMs = retryAfterMs ? performance.now() + retryAfterMs : 0;
    return retryAfterMs + growingMs * (0.5 + Math.random() / 2);
  }
}

/**
 * Group items by endpoint and website, in order. `/identify` takes one item a request.
 * @param {Item[]} items
 * @returns {Group[]}
 */
export function groupItems(items) {
  /** @type {Map<string, Group>} */
  const groups = new Map();
  items.forEach((item, index) => {
    const key = item.kind === "identify" ? `identify ${index}` : `${item.kind} ${item.website}`;
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  });
  return [...groups.values()];
}

/**
 * @param {Group} group
 * @returns {[path: string, json: string]}
 */
function requestOf(group) {
  const [{ kind, website, json }] = /** @type {[Item]} */ (group);
  const path = `/${kind}${website && `?website_id=${encodeURIComponent(website)}`}`;
  return [path, kind === "identify" ? json : `[${group.map((item) => item.json).join(",")}]`];
}

/** @param {Group} group */
function halves(group) {
  const middle = group.length >> 1;
  return [group.slice(0, middle), group.slice(middle)];
}

/**
 * @param {Reply} reply
 * @returns {Reason}
 */
const reasonOf = ({ status, body }) => ({ status, code: String(body?.["code"] ?? ""), message: String(body?.["message"] ?? "") });

/** @param {Reply & {error: unknown}} reply */
function describe({ status, body, error }) {
  if (status >= 200 && status < 300) return `${status}, but the answer is not from Headrace`;
  if (status) return `${status} ${body?.["message"] ?? ""}`.trimEnd();
  return reasonOfFailure(error);
}
