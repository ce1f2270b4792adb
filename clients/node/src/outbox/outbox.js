/**
 * The outbox of one process: a list of files in a directory that processes share.
 *
 * Items are appended to the last file and sent from the first one. A file is deleted when all of its
 * items are settled. Files of dead processes are adopted.
 */

import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { OutboxFull, OutboxUnavailable } from "../failures.js";
import { Owner } from "./owner.js";
import { encodeItem } from "./record.js";
import { Segment } from "./segment.js";

/** @typedef {import("./record.js").Item} Item */
/** @typedef {import("./segment.js").Chunk & {segment: Segment}} Batch */
/**
 * `maxBytes` bounds the files of this process, `segmentBytes` one file; `sync` flushes to the disk.
 * @typedef {{directory: string, maxBytes: number, segmentBytes: number, sync: boolean}} OutboxOptions
 */

/** A settled file of less is kept: to create one for each batch would cost more than its bytes. */
const KEPT_BYTES = 65_536;

export class Outbox {
  #options;
  #owner = new Owner();
  /** @type {Segment[]} in the order in which they are sent */
  #segments = [];
  /** @type {Segment | null} where items are appended; the last of the list */
  #active = null;
  #damaged = 0;

  /**
   * Open the directory, create it where it is missing, and adopt what dead processes left.
   * Throws `OutboxUnavailable`.
   * @param {OutboxOptions} options
   */
  constructor(options) {
    this.#options = options;
    try {
      mkdirSync(options.directory, { recursive: true, mode: 0o700 });
      this.adopt();
    } catch (error) {
      throw new OutboxUnavailable(options.directory, error);
    }
  }

  /** The number of items that are not settled. */
  get pending() {
    return this.#segments.reduce((sum, { pending }) => sum + pending, 0);
  }

  /** The size of the files of this process. */
  get bytes() {
    return this.#segments.reduce((sum, { size }) => sum + size, 0);
  }

  /** The number of lines that were skipped because their checksum was wrong. */
  get damaged() {
    return this.#damaged;
  }

  /**
   * Append items in one write. When it returns, they survive the end of this process. Throws
   * `OutboxFull` or `OutboxUnavailable`; then the items are not promised.
   * @param {Item[]} items
   */
  append(items) {
    const bytes = Buffer.concat(items.map(encodeItem));
    if (this.bytes + bytes.length > this.#options.maxBytes) throw new OutboxFull(this.#options.maxBytes);
    try {
      let segment;
      do {
        segment = this.#writable();
        this.#write(segment, bytes, items.length);
        // A process that took this one for dead may have read the file before this write.
      } while (!this.#isKept(segment, bytes.length, items.length));
    } catch (error) {
      throw new OutboxUnavailable(this.#options.directory, error);
    }
  }

  /**
   * Throws what the file system says. A file without items in which a write failed is deleted: on a
   * full disk each call would leave one behind, and its descriptor.
   * @param {Segment} segment
   * @param {Buffer} bytes
   * @param {number} count
   */
  #write(segment, bytes, count) {
    try {
      segment.append(bytes, count, this.#options.sync);
    } finally {
      if (segment.isBroken && !segment.pending) this.#drop(segment);
    }
  }

  /**
   * Return whether what was appended last is in a file with a name. Throws what the file system
   * says where it can be in none.
   * @param {Segment} segment
   * @param {number} bytes
   * @param {number} count
   */
  #isKept(segment, bytes, count) {
    try {
      if (segment.isMine()) return true;
      if (segment.isDeleted()) {
        this.keep();
        return true;
      }
    } catch (error) {
      segment.takeBack(bytes, count);
      throw error;
    }
    this.#drop(segment);
    return false;
  }

  /**
   * Write what waits again where somebody has deleted its file, or the whole directory: without a
   * name it would end with this process. Throws what the file system says.
   */
  keep() {
    for (const segment of this.#segments) {
      if (segment.pending && segment.isDeleted()) this.#create((path) => segment.moveTo(path));
    }
  }

  #writable() {
    const active = this.#active;
    if (active && !active.isBroken && active.size < this.#options.segmentBytes) return active;
    const segment = this.#create(Segment.create);
    this.#segments.push(segment);
    this.#active = segment;
    return segment;
  }

  /**
   * Create a file under a new name, and the directory where somebody has deleted it.
   * @template T
   * @param {(path: string) => T} create
   */
  #create(create) {
    const { directory, sync } = this.#options;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const created = create(join(directory, this.#owner.nextName()));
    if (sync) syncDirectory(directory);
    return created;
  }

  /**
   * Return the oldest items that are not settled, or null where there are none.
   * @param {number} maxItems
   * @param {number} maxBytes
   * @returns {Batch | null}
   */
  next(maxItems, maxBytes) {
    for (const segment of [...this.#segments]) {
      const chunk = segment.read(maxItems, maxBytes);
      if (chunk.items.length) return { segment, ...chunk };
      if (segment !== this.#active) this.#drop(segment);
    }
    return null;
  }

  /**
   * Settle the items of a batch: they were stored, or refused for good.
   * @param {Batch} batch
   */
  settle({ segment, items, end }) {
    if (segment.isRemoved) return;
    segment.settle({ items, end });
    if (segment.isDrained && (segment !== this.#active || segment.size > KEPT_BYTES)) this.#drop(segment);
  }

  /** @param {Segment} segment */
  #drop(segment) {
    this.#segments = this.#segments.filter((other) => other !== segment);
    if (segment === this.#active) this.#active = null;
    segment.remove();
  }

  /** Return a function that says whether all items that are there now are settled. */
  checkpoint() {
    const ends = this.#segments.map((segment) => ({ segment, end: segment.size }));
    return () => ends.every(({ segment, end }) => segment.isRemoved || segment.done >= end || !segment.pending);
  }

  /** Show that this process lives, and adopt the files of those that do not. */
  heartbeat() {
    this.keep();
    for (const segment of this.#segments) segment.touch();
    this.adopt();
  }

  /** Take over the files of dead processes. Throws what the file system says. */
  adopt() {
    const { directory } = this.#options;
    for (const name of namesIn(directory)) {
      const path = join(directory, name);
      const changedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
      if (changedMs === undefined || !this.#owner.isAbandoned(name, changedMs, Date.now())) continue;
      const adopted = join(directory, this.#owner.nextName());
      if (!renamed(path, adopted)) continue; // another process was faster
      const segment = this.#open(adopted);
      this.#damaged += segment.damaged;
      segment.touch();
      this.#segments.splice(this.#active ? -1 : this.#segments.length, 0, segment);
    }
  }

  /**
   * Open a file that was renamed. Throws what the file system says, and leaves the file to the next
   * attempt: under this name it would wait until this process ends.
   * @param {string} path
   */
  #open(path) {
    try {
      return Segment.open(path);
    } catch (error) {
      renameSync(path, join(this.#options.directory, this.#owner.freeName()));
      throw error;
    }
  }

  /**
   * Close all files, delete those without items, and leave the others to the next process. Throws
   * `OutboxUnavailable` where items are lost with the files that somebody has deleted.
   */
  close() {
    try {
      this.keep();
    } catch (error) {
      throw new OutboxUnavailable(this.#options.directory, error);
    } finally {
      for (const segment of this.#segments) this.#leave(segment);
      this.#segments = [];
      this.#active = null;
    }
  }

  /** @param {Segment} segment */
  #leave(segment) {
    if (!segment.pending) return segment.remove();
    segment.close();
    try {
      renameSync(segment.path, join(this.#options.directory, this.#owner.freeName()));
    } catch {
      // under its name it is adopted too, when this process has ended
    }
  }
}

/**
 * Return the names in a directory in their order; there are none in one that was deleted.
 * @param {string} directory
 */
function namesIn(directory) {
  try {
    return readdirSync(directory).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/**
 * Rename a file; return whether it was there.
 * @param {string} from
 * @param {string} to
 */
function renamed(from, to) {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** @param {unknown} error */
const isMissing = (error) => /** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT";

/**
 * Make the name of a new file durable. Windows cannot open directories, and needs not to.
 * @param {string} directory
 */
function syncDirectory(directory) {
  if (process.platform === "win32") return;
  const file = openSync(directory, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
