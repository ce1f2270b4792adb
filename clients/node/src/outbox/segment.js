/** One file of an outbox: lines are appended, read from a position on, and settled in order. */

import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, statSync, unlinkSync, utimesSync, writeSync } from "node:fs";
import { decodeLine, encodeDone } from "./record.js";

/** @typedef {import("./record.js").Item} Item */

/** What was read: items, and the position behind the last line. @typedef {{items: Item[], end: number}} Chunk */

const LINE_BREAK = 10;

export class Segment {
  /** The bytes of whole lines. */
  size = 0;
  /** The position before which all items are settled. */
  done = 0;
  /** The number of items that are not settled. */
  pending = 0;
  /** The number of lines whose checksum is wrong. */
  damaged = 0;
  isRemoved = false;
  /** Whether a write failed: nothing more may be appended behind what it left. */
  isBroken = false;
  #file;
  #inode;

  /**
   * @param {string} path
   * @param {number} file a descriptor that was opened for appending and reading
   */
  constructor(path, file) {
    this.path = path;
    this.#file = file;
    this.#inode = fstatSync(file).ino;
  }

  /**
   * Create an empty file. Throws what the file system says.
   * @param {string} path
   */
  static create(path) {
    return new Segment(path, openSync(path, "ax+", 0o600));
  }

  /**
   * Open a file that another process wrote, and cut off an incomplete last line. Throws what the
   * file system says.
   * @param {string} path
   */
  static open(path) {
    const segment = new Segment(path, openSync(path, "a+", 0o600));
    try {
      segment.#recover();
    } catch (error) {
      segment.close();
      throw error;
    }
    return segment;
  }

  #recover() {
    const length = fstatSync(this.#file).size;
    const bytes = this.#readBytes(0, length);
    this.size = bytes.lastIndexOf(LINE_BREAK) + 1;
    if (this.size < length) ftruncateSync(this.#file, this.size);
    /** @type {number[]} */
    const starts = [];
    for (const { start, line } of lines(bytes, 0)) {
      if (!line) this.damaged++;
      else if ("done" in line) this.done = Math.max(this.done, line.done);
      else starts.push(start);
    }
    this.pending = starts.filter((start) => start >= this.done).length;
  }

  /**
   * Append whole lines of items. When it returns, the system has them: they survive the end of this
   * process, and with `sync` the loss of power. Throws what the file system says, and keeps nothing
   * of them then.
   * @param {Buffer} bytes
   * @param {number} count the number of items
   * @param {boolean} sync
   */
  append(bytes, count, sync) {
    this.#write(bytes);
    this.pending += count;
    if (sync) this.#flush(bytes.length, count);
  }

  /**
   * @param {number} bytes
   * @param {number} count
   */
  #flush(bytes, count) {
    try {
      fdatasyncSync(this.#file);
    } catch (error) {
      this.isBroken = true;
      this.takeBack(bytes, count);
      throw error;
    }
  }

  /** @param {Buffer} bytes */
  #write(bytes) {
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(this.#file, bytes, written);
    } catch (error) {
      this.isBroken = true;
      throw error;
    }
    this.size += bytes.length;
  }

  /**
   * Read items from the settled position on: at least one where there is one, and beyond that no
   * more than the limits allow.
   * @param {number} maxItems
   * @param {number} maxBytes
   * @returns {Chunk}
   */
  read(maxItems, maxBytes) {
    const chunk = { items: /** @type {Item[]} */ ([]), end: this.done };
    while (!chunk.items.length && chunk.end < this.size) this.#readInto(chunk, maxItems, maxBytes);
    return chunk;
  }

  /**
   * @param {Chunk} chunk
   * @param {number} maxItems
   * @param {number} maxBytes
   */
  #readInto(chunk, maxItems, maxBytes) {
    const start = chunk.end;
    const left = this.size - start;
    let bytes = this.#readBytes(start, Math.min(maxBytes, left));
    while (!bytes.includes(LINE_BREAK) && bytes.length < left) {
      bytes = this.#readBytes(start, Math.min(2 * bytes.length, left));
    }
    for (const { end, line } of lines(bytes, start)) {
      if (line && "json" in line) chunk.items.push(line);
      chunk.end = end;
      if (chunk.items.length === maxItems) return;
    }
    if (chunk.end === start) chunk.end = this.size; // shorter than it was: somebody truncated it
  }

  /**
   * @param {number} start
   * @param {number} length
   */
  #readBytes(start, length) {
    const bytes = Buffer.allocUnsafe(length);
    let read = 0;
    for (let more = 1; more && read < length; read += more) more = readSync(this.#file, bytes, read, length - read, start + read);
    return bytes.subarray(0, read);
  }

  /**
   * Settle what was read. A mark that cannot be written costs a repetition after a crash, which the
   * ids of the items make harmless.
   * @param {Chunk} chunk
   */
  settle({ items, end }) {
    const wasLast = end === this.size;
    this.pending -= items.length;
    this.done = end;
    try {
      if (!this.isBroken) this.#write(encodeDone(end));
    } catch {
      return;
    }
    if (wasLast) this.done = this.size;
  }

  get isDrained() {
    return this.done === this.size;
  }

  /** Return whether the file is still where it was created: another process renames what it adopts. */
  isMine() {
    return statSync(this.path, { throwIfNoEntry: false })?.ino === this.#inode;
  }

  /**
   * Return whether somebody has deleted the file, so that what is in it ends with this process. A
   * process that adopted it wrote a mark before it deleted it, because everything is settled.
   */
  isDeleted() {
    const { nlink, size } = fstatSync(this.#file);
    return nlink === 0 && (this.isBroken || size === this.size);
  }

  /**
   * Write the whole lines of the file to a new one and go on with that; positions stay as they are.
   * Throws what the file system says.
   * @param {string} path
   */
  moveTo(path) {
    const bytes = this.#readBytes(0, this.size);
    const moved = Segment.create(path);
    try {
      moved.#write(bytes);
      fdatasyncSync(moved.#file);
    } catch (error) {
      moved.remove();
      throw error;
    }
    closeSync(this.#file);
    this.path = path;
    this.#file = moved.#file;
    this.#inode = moved.#inode;
    this.isBroken = false;
  }

  /**
   * Forget the last items that were appended; nobody has read them.
   * @param {number} bytes
   * @param {number} count
   */
  takeBack(bytes, count) {
    this.size -= bytes;
    this.pending -= count;
    ftruncateSync(this.#file, this.size);
  }

  /** Show other processes that the owner of the file lives. */
  touch() {
    const now = new Date();
    ignoreMissing(() => utimesSync(this.path, now, now));
  }

  close() {
    closeSync(this.#file);
  }

  /** Close and delete the file. */
  remove() {
    this.isRemoved = true;
    this.close();
    ignoreMissing(() => unlinkSync(this.path));
  }
}

/**
 * Yield the whole lines of some bytes with their positions in the file.
 * @param {Buffer} bytes
 * @param {number} offset the position of the first byte
 */
function* lines(bytes, offset) {
  for (let start = 0, end; (end = bytes.indexOf(LINE_BREAK, start)) >= 0; start = end + 1) {
    yield { start: offset + start, end: offset + end + 1, line: decodeLine(bytes.subarray(start, end)) };
  }
}

/** @param {() => void} operation */
function ignoreMissing(operation) {
  try {
    operation();
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") throw error;
  }
}
