/**
 * Items that will never be stored, kept in a file beside the outbox: `refused.ndjson`, one JSON
 * object a line with the time, the reason and the item. Beyond 8 MiB the file becomes
 * `refused.old.ndjson`, and the one before it is deleted.
 */

import { appendFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";

/** @typedef {import("../outbox/record.js").Item} Item */

/**
 * Why an item was refused: what the service answered, or status 0 and the code EXPIRED.
 * @typedef {{status: number, code: string, message: string}} Reason
 */
/** @typedef {{item: Item, reason: Reason}} Refused */

const MAX_FILE_BYTES = 8 * 1024 * 1024;

export class Refusals {
  #path;
  #oldPath;

  /** @param {string} directory */
  constructor(directory) {
    this.#path = join(directory, "refused.ndjson");
    this.#oldPath = join(directory, "refused.old.ndjson");
  }

  /**
   * Keep items, each with its reason. Throws what the file system says.
   * @param {Refused[]} items
   */
  keep(items) {
    const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (size > MAX_FILE_BYTES) renameSync(this.#path, this.#oldPath);
    const refused = new Date().toISOString();
    const lines = items.map(({ item: { kind, website, json }, reason }) => `${JSON.stringify({ refused, ...reason, kind, website })}`.slice(0, -1) + `,"item":${json}}\n`);
    appendFileSync(this.#path, lines.join(""), { mode: 0o600 });
  }
}
