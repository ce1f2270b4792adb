/**
 * Whose file is whose: the name of an outbox file names its owner, `HOST-PID-NONCE-NUMBER.log`.
 *
 * Deciding that an owner is dead is a guess where processes do not see each other (containers, file
 * servers). A wrong guess loses nothing: who adopts a file renames it, and the owner looks after
 * each append whether its file is still there (`Outbox.append`).
 */

import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";

const NAME = /^([0-9a-f]{8}|free)-(\d+)-([0-9a-f]{8})-(\d+)\.log$/;
const FREE = "free";
export const SILENCE_MS = 60_000;
/** An owner shows its life every 15 s; after four times that its silence means that it is dead. */
export const HEARTBEAT_MS = SILENCE_MS / 4;

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM";
  }
}

export class Owner {
  #host = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);
  #nonce = randomBytes(4).toString("hex");
  #startedMs = Date.now() - process.uptime() * 1000;
  #count = 0;

  /** Return a name that no other file has. */
  nextName() {
    return `${this.#host}-${process.pid}-${this.#nonce}-${this.#count++}.log`;
  }

  /** Return a name for a file that any process may adopt at once. */
  freeName() {
    return `${FREE}-${process.pid}-${this.#nonce}-${this.#count++}.log`;
  }

  /**
   * Return whether a file belongs to a process that is dead, so that this one may adopt it.
   * @param {string} name
   * @param {number} changedMs when the file was changed or touched last
   * @param {number} nowMs
   */
  isAbandoned(name, changedMs, nowMs) {
    const [, host, pid, nonce] = NAME.exec(name) ?? [];
    if (host === FREE) return true;
    if (!host || nonce === this.#nonce) return false;
    if (nowMs - changedMs > SILENCE_MS) return true;
    if (host !== this.#host) return false;
    // A restarted container has its process ids again: what is older than this process is not its own.
    return Number(pid) === process.pid ? changedMs < this.#startedMs : !isAlive(Number(pid));
  }
}
