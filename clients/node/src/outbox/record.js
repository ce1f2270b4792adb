/**
 * The lines of an outbox file.
 *
 *     CHECKSUM TIME KIND WEBSITE JSON      an item
 *     CHECKSUM done POSITION               all items before this byte of the file are settled
 *
 * The checksum is the CRC-32 of the rest of the line, in eight hexadecimal digits. JSON has no line
 * breaks of its own, so a damaged line never hides the next one.
 */

import { crc32 } from "./crc32.js";

/** @typedef {"track" | "vitals" | "errors" | "identify"} Kind */

/**
 * One item of the outbox: the epoch milliseconds at which it was written, the endpoint it is for,
 * its website ("" is the home website of the key), and the item itself as JSON.
 * @typedef {{time: number, kind: Kind, website: string, json: string}} Item
 */

/** @typedef {Item | {done: number}} Line */

const CHECKSUM_LENGTH = 8;
const HOME = "-";
const LINE = /^(\d+) (track|vitals|errors|identify) (\S+) (\{.*\})$/s;
const DONE = /^done (\d+)$/;

/** @param {string} text */
function seal(text) {
  const line = Buffer.from(`${"0".repeat(CHECKSUM_LENGTH)} ${text}\n`);
  line.write(checksumOf(line.subarray(CHECKSUM_LENGTH + 1, -1)), "latin1");
  return line;
}

/** @param {Buffer} bytes */
const checksumOf = (bytes) => crc32(bytes).toString(16).padStart(CHECKSUM_LENGTH, "0");

/**
 * Return the line of an item, with its line break.
 * @param {Item} item
 */
export const encodeItem = ({ time, kind, website, json }) => seal(`${time} ${kind} ${website || HOME} ${json}`);

/**
 * Return the line that settles all items before a position.
 * @param {number} position
 */
export const encodeDone = (position) => seal(`done ${position}`);

/**
 * Return what a line without its line break says, or null where it is damaged.
 * @param {Buffer} line
 * @returns {Line | null}
 */
export function decodeLine(line) {
  const bytes = line.subarray(CHECKSUM_LENGTH + 1);
  if (line.toString("latin1", 0, CHECKSUM_LENGTH + 1) !== `${checksumOf(bytes)} `) return null;
  const text = bytes.toString();
  const done = DONE.exec(text);
  if (done) return { done: Number(done[1]) };
  const item = LINE.exec(text);
  if (!item) return null;
  const [, time, kind, website, json] = /** @type {[string, string, Kind, string, string]} */ (/** @type {unknown} */ (item));
  return { time: Number(time), kind, website: website === HOME ? "" : website, json };
}
