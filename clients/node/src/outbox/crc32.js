/** CRC-32 (IEEE 802.3), because `zlib.crc32` is newer than the oldest Node.js that is supported. */

const POLYNOMIAL = 0xedb88320;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
  return remainder;
});

/**
 * Return the checksum of some bytes, from 0 to 2³² - 1.
 * @param {Uint8Array} bytes
 */
export function crc32(bytes) {
  let remainder = 0xffffffff;
  for (const byte of bytes) remainder = (remainder >>> 8) ^ /** @type {number} */ (TABLE[(remainder ^ byte) & 0xff]);
  return (remainder ^ 0xffffffff) >>> 0;
}
