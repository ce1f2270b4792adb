/** The client: what programs call. */

import { join } from "node:path";
import { HeadraceError } from "./failures.js";
import { eventOf, eventOfMany, identificationOf, makeItem, reportOf, vitalOf } from "./items.js";
import { HEARTBEAT_MS } from "./outbox/owner.js";
import { booleanOption, checkOptions, functionOption, numberOption, textOption, websiteOption } from "./options.js";
import { Outbox } from "./outbox/outbox.js";
import { send as sendQuery } from "./query.js";
import { Refusals } from "./sending/refusals.js";
import { Sender } from "./sending/sender.js";
import { MAX_ITEMS_REPLY_BYTES, post } from "./sending/transport.js";

/** @typedef {import("./items.js").Event} Event */
/** @typedef {import("./items.js").EventFields} EventFields */
/** @typedef {import("./items.js").Fields} Fields */
/** @typedef {import("./items.js").Vital} Vital */
/** @typedef {import("./items.js").ErrorReport} ErrorReport */
/** @typedef {import("./items.js").Identification} Identification */
/** @typedef {import("./outbox/record.js").Item} Item */
/** @typedef {import("./sending/refusals.js").Reason} Reason */
/** @typedef {import("./sending/refusals.js").Refused} Refused */

/**
 * @typedef {object} Options
 * @property {string} [url] the address of Headrace; `HEADRACE_URL` by default
 * @property {string} [key] a key with `track:events`, and `read:data` for queries; `HEADRACE_API_KEY` by default
 * @property {string} [website] the website of items that name none; `HEADRACE_WEBSITE_ID` by default
 * @property {string} [directory] where the outbox is; `HEADRACE_OUTBOX` or `.headrace-outbox` by default
 * @property {boolean} [sync] whether each call waits until the disk has the item: what returned
 *   then survives a loss of power too, at the price of a flush a call; false by default
 * @property {number} [maxOutboxBytes] beyond it `track` throws `OutboxFull`; 128 MiB by default
 * @property {number} [lingerMs] how long an item waits for others; 250 by default
 * @property {number} [timeoutMs] the deadline of a request; 20,000 by default
 * @property {number} [exitTimeoutMs] how long a process that is about to end goes on sending; 2,000 by default
 * @property {(item: Record<string, unknown>, reason: Reason) => void} [onRefused] called for each item that will never be stored
 */

/**
 * `pending` items wait in the outbox, whose files have `bytes`; `sent` are stored, `refused` never
 * will be (`refused.ndjson` has them), `damaged` lines of the outbox could not be read. `lastError`
 * is why the last attempt failed, "" after a success.
 * @typedef {{pending: number, bytes: number, sent: number, refused: number, damaged: number, lastError: string}} Stats
 */

/** No other characters can be sent: each request would fail. */
const KEY = /^[!-~]*$/;
const NO_CREDENTIALS = "neither a key nor a website is given: set key or HEADRACE_API_KEY, or website or HEADRACE_WEBSITE_ID";
const MAX_OUTBOX_BYTES = 128 * 1024 * 1024;
const SEGMENT_BYTES = 1024 * 1024;
const SENDING = {
  maxItems: 1000,
  maxBytes: 256 * 1024,
  maxAgeMs: 6 * 86_400_000, // the service remembers ids for seven days
  minBackoffMs: 250,
  maxBackoffMs: 60_000,
};

export class Headrace {
  #service;
  #website;
  #exitTimeoutMs;
  #onRefused;
  #outbox;
  #sender;
  #heartbeat;
  #lastError = "";
  /** @type {Set<string>} */
  #warned = new Set();
  #isClosed = false;
  #hasExited = false;
  /** Of the last request with items. */
  #abort = new AbortController();

  /**
   * Open the outbox and begin to send what is in it. Throws `HeadraceError` where no address is
   * given, or neither a key nor a website, or an option of the wrong type or an unknown one, and
   * `OutboxUnavailable`.
   * @param {Options} [options]
   */
  constructor(options = {}) {
    checkOptions(options);
    const env = process.env;
    this.#service = {
      url: textOption("url", options.url ?? env["HEADRACE_URL"] ?? "").trim().replace(/\/+$/, ""),
      key: textOption("key", options.key ?? env["HEADRACE_API_KEY"] ?? "").trim(),
      timeoutMs: numberOption("timeoutMs", options.timeoutMs ?? 20_000),
    };
    this.#website = websiteOption(options.website ?? env["HEADRACE_WEBSITE_ID"] ?? "");
    this.#exitTimeoutMs = numberOption("exitTimeoutMs", options.exitTimeoutMs ?? 2000);
    const lingerMs = numberOption("lingerMs", options.lingerMs ?? 250);
    this.#onRefused = functionOption("onRefused", options.onRefused ?? undefined);
    const outboxes = textOption("directory", options.directory ?? env["HEADRACE_OUTBOX"] ?? "") || ".headrace-outbox";
    const directory = join(outboxes, folderOf(this.#service.url));
    if (!this.#service.key && !this.#website) throw new HeadraceError(NO_CREDENTIALS);
    if (!KEY.test(this.#service.key)) throw new HeadraceError("the key has blanks or other characters that no key has");
    this.#outbox = new Outbox({
      directory,
      maxBytes: numberOption("maxOutboxBytes", options.maxOutboxBytes ?? MAX_OUTBOX_BYTES),
      segmentBytes: SEGMENT_BYTES,
      sync: booleanOption("sync", options.sync ?? false),
    });
    this.#sender = new Sender(
      {
        outbox: this.#outbox,
        refusals: new Refusals(directory),
        post: (path, json) => this.#post(path, json),
        onRefused: (refused) => this.#reportRefused(refused),
        onProblem: (problem) => void (this.#lastError = problem),
      },
      { ...SENDING, lingerMs },
    );
    this.#heartbeat = setInterval(this.#beat, HEARTBEAT_MS);
    this.#heartbeat.unref();
    process.on("beforeExit", this.#exit);
    if (this.#outbox.pending) this.#sender.wake();
  }

  /**
   * Record an event. When it returns, the event is in the outbox and survives the end of this
   * process, also by `kill -9`. Returns the id of the event. Throws `OutboxFull`,
   * `OutboxUnavailable`, or `TypeError` for arguments that no event can be made of.
   * @param {string} name
   * @param {object} [properties] anything that JSON can express
   * @param {EventFields} [fields]
   */
  track(name, properties = {}, fields = {}) {
    return this.#add("track", eventOf(name, properties, fields));
  }

  /**
   * Record many events with one write; all of them, or none where it throws. Returns their ids.
   * @param {Event[]} events
   */
  trackMany(events) {
    if (!Array.isArray(events)) throw new TypeError("events must be an array");
    const made = events.map((event) => makeItem("track", eventOfMany(event), this.#website));
    this.#append(made.map(({ item }) => item));
    return made.map(({ id }) => id);
  }

  /**
   * Record a web vital, as `track` does.
   * @param {Vital} vital
   */
  vitals(vital) {
    return this.#add("vitals", vitalOf(vital));
  }

  /**
   * Record an error: what was thrown, or a report. As `track` does.
   * @param {unknown} error
   * @param {Partial<ErrorReport>} [fields]
   */
  errors(error, fields = {}) {
    return this.#add("errors", reportOf(error, fields));
  }

  /**
   * Record whose account a visitor has, as `track` does.
   * @param {string} profileId
   * @param {object} [traits]
   * @param {Fields} [fields]
   */
  identify(profileId, traits, fields = {}) {
    return this.#add("identify", identificationOf(profileId, traits, fields));
  }

  /**
   * Send a custom query and return its rows. Throws `QueryFailed`.
   * @param {Record<string, unknown>} body as `POST /v1/query/custom` takes it
   * @param {{websiteId?: string | undefined, key?: string | undefined}} [options]
   * @returns {Promise<Record<string, unknown>[]>}
   */
  query(body, { websiteId = this.#website, key = this.#service.key } = {}) {
    return sendQuery({ ...this.#service, key }, websiteId, body);
  }

  /**
   * Send at once. Resolves to true when everything that is in the outbox now is stored or refused,
   * to false when `timeoutMs` passed before.
   * @param {number} [timeoutMs]
   */
  flush(timeoutMs = 10_000) {
    return this.#isClosed ? Promise.resolve(true) : this.#sender.flush(timeoutMs);
  }

  /**
   * Flush, and close the outbox. What is unsent then is sent by the next client of the directory.
   * Resolves to whether nothing is.
   * @param {number} [timeoutMs]
   */
  async close(timeoutMs = 10_000) {
    const isFlushed = await this.flush(timeoutMs);
    if (this.#isClosed) return isFlushed;
    this.#isClosed = true;
    clearInterval(this.#heartbeat);
    process.off("beforeExit", this.#exit);
    this.#sender.close();
    this.#abort.abort(); // its connection would keep the program alive
    this.#end(() => this.#outbox.close());
    return isFlushed;
  }

  /** @returns {Stats} */
  stats() {
    const { pending, bytes, damaged } = this.#outbox;
    const { sent, refused } = this.#sender;
    return { pending, bytes, sent, refused, damaged, lastError: this.#lastError };
  }

  /**
   * @param {import("./outbox/record.js").Kind} kind
   * @param {Record<string, unknown> & Fields} fields
   */
  #add(kind, fields) {
    const { item, id } = makeItem(kind, fields, this.#website);
    this.#append([item]);
    return id;
  }

  /** @param {Item[]} items */
  #append(items) {
    if (this.#isClosed) throw new HeadraceError("the client is closed");
    this.#outbox.append(items);
    this.#sender.wake();
  }

  /**
   * @param {string} path
   * @param {string} json
   */
  async #post(path, json) {
    this.#abort = new AbortController();
    const reply = await post(this.#service, path, json, this.#abort, MAX_ITEMS_REPLY_BYTES);
    if (reply.body?.["status"] === "success") this.#lastError = "";
    if (reply.status === 401) this.#warn(reply.status, "", "the key is refused; events wait in the outbox");
    return reply;
  }

  /** @param {Refused[]} refused */
  #reportRefused(refused) {
    const [{ reason }] = /** @type {[Refused]} */ (refused);
    this.#lastError = `${reason.status} ${reason.message}`;
    this.#warn(reason.status, reason.code, `items are refused: ${reason.message || reason.code}; refused.ndjson has them`);
    for (const one of refused) void this.#callOnRefused(one);
  }

  /**
   * Nothing that the program does with a refused item ends the sender, nor the program.
   * @param {Refused} refused
   */
  async #callOnRefused({ item, reason }) {
    try {
      await this.#onRefused?.(JSON.parse(item.json), reason);
    } catch (error) {
      process.emitWarning(`onRefused failed: ${error}`, "HeadraceWarning");
    }
  }

  /**
   * Warn once of each kind of problem that needs somebody.
   * @param {number} status
   * @param {string} code
   * @param {string} problem
   */
  #warn(status, code, problem) {
    const kind = `${status} ${code}`;
    if (this.#warned.has(kind)) return;
    this.#warned.add(kind);
    process.emitWarning(`${status}: ${problem}`, "HeadraceWarning");
  }

  #beat = () => {
    try {
      this.#outbox.heartbeat();
      if (this.#outbox.pending) this.#sender.wake();
    } catch (error) {
      this.#lastError = String(error);
    }
  };

  /** The event loop is empty: send what is left, once. What fails now, the next process sends. */
  #exit = () => {
    if (this.#hasExited || !this.#outbox.pending) return;
    this.#hasExited = true;
    void this.flush(this.#exitTimeoutMs).then(() => {
      this.#abort.abort();
      this.#end(() => this.#outbox.keep());
    });
  };

  /**
   * Do the last thing with the outbox: when that fails, what is unsent is lost.
   * @param {() => void} operation
   */
  #end(operation) {
    try {
      operation();
    } catch (error) {
      process.emitWarning(`items that were not sent may be lost: ${error}`, "HeadraceWarning");
    }
  }
}

/**
 * Return the folder of the outbox of one service. Throws `HeadraceError` for what is no address.
 * @param {string} url
 */
function folderOf(url) {
  if (!url) throw new HeadraceError("no address is given: set url or HEADRACE_URL");
  const reason = reasonAgainst(url);
  if (reason) throw new HeadraceError(`${withoutSecrets(url)} is no address of a service: ${reason}`);
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`.replace(/\/$/, "").replace(/[^\w.-]/g, "_");
}

/**
 * Return why no request can be made of an address, or "".
 * @param {string} url
 */
function reasonAgainst(url) {
  try {
    const { protocol, username, password, search, hash } = new URL(url);
    if (!/^https?:$/.test(protocol)) return "it begins with http:// or https://"; // localhost:8000 is a URL, too
    if (username || password) return "it has a user name or password";
    return search || hash ? "it has a query or a fragment" : "";
  } catch {
    return "it is no URL";
  }
}

/**
 * Return what an error may show of an address: no user name, password, query or fragment. A
 * password may have any character.
 * @param {string} url
 */
const withoutSecrets = (url) => url.replace(/^(\w+:\/\/)?.*@/s, "$1***@").replace(/([?#]).*/s, "$1***");
