/**
 * JSON with whole numbers of any size. Those that numbers of JavaScript would round are of the type
 * `bigint`; browsers before 2025 round them all the same.
 */

const isExact = "rawJSON" in JSON;
const WHOLE = /^-?\d+$/;

if (isExact) {
  const { rawJSON } = /** @type {any} */ (JSON);
  /** @type {any} */ (BigInt.prototype).toJSON = /** @this {bigint} */ function () {
    return rawJSON(String(this));
  };
}

/** Read JSON; where `keys` are given, numbers of others are rounded. @param {string} text @param {readonly string[]} [keys] @returns {any} */
export function parseJson(text, keys) {
  const exactly = (/** @type {string} */ key, /** @type {unknown} */ value, /** @type {{source?: string}} */ { source = "" }) =>
    typeof value === "number" && isRounded(source) && (keys?.includes(key) ?? true) ? BigInt(source) : value;
  return JSON.parse(text, /** @type {any} */ (isExact && exactly));
}

/** The number that a text is, undefined for none. @param {string} text @returns {number | bigint | undefined} */
export function numberOf(text) {
  const word = text.trim();
  if (isExact && isRounded(word)) return BigInt(word);
  return word !== "" && Number.isFinite(Number(word)) ? Number(word) : undefined;
}

/** @param {string} word */
function isRounded(word) {
  return WHOLE.test(word) && !Number.isSafeInteger(Number(word));
}
