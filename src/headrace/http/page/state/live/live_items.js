/** What the live view says of an item. Pure. */

import { vitalValue } from "../analyses/vitals.js";
import { counted, datetime } from "../format.js";

/** @typedef {{kind: string, body: any, number: number, received: string}} Shown  `received` is an ISO 8601 time */

export const MAX_SHOWN = 200;

const CODES = /** @type {Record<string, string>} */ ({
  INVALID_BODY: "The body breaks a rule, so nothing of the call was stored.",
  SCOPE_MISMATCH: "An item names a website that these credentials may not write to.",
  PAYLOAD_TOO_LARGE: "The body is larger than the service takes, or has too many items.",
  UNSUPPORTED_MEDIA_TYPE: "The Content-Type is not JSON.",
  UNSUPPORTED_ENCODING: "The Content-Encoding is not one that the service reads.",
  REQUEST_TIMEOUT: "The body came too slowly.",
});

/** Put an item before the others, of which the oldest go. @param {Shown[]} items @param {Shown} item */
export function withItem(items, item) {
  return [item, ...items].slice(0, MAX_SHOWN);
}

/** The kind of an item in a word. @param {Shown} item */
export function kindOf({ kind, body }) {
  if (kind !== "event") return kind;
  return { events: "event", errors: "error", performance: "vital" }[/** @type {"events"} */ (body.table)] ?? body.table;
}

/** What an item is about. @param {Shown} item @returns {string} */
export function titleOf({ kind, body }, timezone = "UTC") {
  if (kind === "missed") return missedTitle(body, timezone);
  if (kind === "refused") return `${body.path}: ${body.code}`;
  const { row } = body;
  if (body.table === "errors") return row.message || row.error_type || "(no message)";
  return body.table === "performance" ? `${row.metric_name} ${vitalValue(row.metric_name, Number(row.metric_value))}` : row.event_name;
}

/** @param {{count: number | null, from?: string, to?: string}} body @param {string} timezone */
function missedTitle({ count, from, to }, timezone) {
  if (!from || !to) return count === null ? "Some items were left out" : `${counted(count, "item was", "items were")} left out`;
  const lost = count === null ? "items may be missing" : `${counted(count, "item is", "items are")} missing`;
  return `The stream was interrupted from ${times(from, to, timezone).join(" to ")}: ${lost}`;
}

/** Two datetimes, as times where both are on one day. @param {string} from @param {string} to @param {string} timezone */
function times(from, to, timezone) {
  const whole = [datetime(from, timezone), datetime(to, timezone)];
  const [first, last] = whole.map((text) => text.slice(0, -8));
  return first === last ? whole.map((text) => text.slice(-8)) : whole;
}

/** Why a call was refused, one sentence each. @param {Shown} item @returns {string[]} */
export function faultsOf({ kind, body }) {
  if (kind !== "refused") return [];
  const faults = body.errors.map((/** @type {any} */ one) => `Item ${one.index + 1}${one.field ? `, ${one.field}` : ""}: ${one.message}`);
  return [CODES[body.code] ?? "The call was refused.", ...faults];
}

/** Whether the JSON of an item has a text, in any case; a gap is shown whatever is looked for. @param {Shown} item @param {string} text */
export function hasText(item, text) {
  return text === "" || item.kind === "missed" || JSON.stringify(item.body).toLowerCase().includes(text.toLowerCase());
}
