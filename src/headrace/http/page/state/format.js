/** Values as people read them. Pure; English, as the page is. */

const EXACT = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
/** Beyond trillions, which have the last letter. */
const SCIENTIFIC = new Intl.NumberFormat("en", { notation: "scientific", maximumSignificantDigits: 3 });
const LETTERS_END = 1e15;
const PERCENT = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const REGIONS = new Intl.DisplayNames("en", { type: "region", fallback: "code" });
const DAY = dayFirst({ timeZone: "UTC", day: "numeric", month: "short" });
const WHOLE_DAY = dayFirst({ timeZone: "UTC", weekday: "short", day: "numeric", month: "short", year: "numeric" });
const DATE = dayFirst({ timeZone: "UTC", day: "numeric", month: "short", year: "numeric" });
const SHORT_MONTH = dayFirst({ timeZone: "UTC", month: "short", year: "numeric" });
const MONTH = dayFirst({ timeZone: "UTC", month: "long", year: "numeric" });

/** Dates as the axes of charts have them: the day first, months of three letters. @param {Intl.DateTimeFormatOptions} options */
function dayFirst(options) {
  const format = new Intl.DateTimeFormat("en-GB", options);
  return { format: (/** @type {number} */ time) => format.format(time).replace(/\bSept\b/, "Sep") };
}

export const NOTHING = "–";

/** All digits that matter. @param {number | null | undefined} value */
export function exactNumber(value) {
  return value == null ? NOTHING : EXACT.format(value);
}

/** A number and what it counts. @param {number | null | undefined} count @param {string} one @param {string} several */
export function counted(count, one, several) {
  return `${exactNumber(count)} ${count === 1 ? one : several}`;
}

/** Exact below 10,000, else three digits and a letter. @param {number | null | undefined} value */
export function shortNumber(value) {
  if (value == null) return NOTHING;
  return Math.abs(value) < 10_000 ? EXACT.format(Number.isInteger(value) ? value : Number(value.toPrecision(4))) : (Math.abs(value) < LETTERS_END ? COMPACT : SCIENTIFIC).format(value);
}

/** With one decimal, so that shares below each other align; nothing and all need none. @param {number | null | undefined} value a share, 0 to 1 */
export function percent(value) {
  if (value == null) return NOTHING;
  if (value > 0 && value < 0.0005) return "<0.1%";
  return value === 0 || value === 1 ? `${100 * value}%` : PERCENT.format(value);
}

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds == null) return NOTHING;
  if (seconds < 1 && seconds > 0) return `${Math.round(seconds * 1000)} ms`;
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  if (whole >= 86_400) return `${Math.floor(whole / 86_400)}d ${Math.floor((whole % 86_400) / 3600)}h`;
  if (parts[0]) return `${parts[0]}h ${parts[1]}m`;
  return parts[1] ? `${parts[1]}m ${String(parts[2]).padStart(2, "0")}s` : `${whole}s`;
}

/** Relative change, null where it has no meaning. @param {number | null | undefined} now @param {number | null | undefined} before */
export function change(now, before) {
  if (now == null || before == null || before === 0) return null;
  return (now - before) / before;
}

/** A relative change as people say it: a share, or how many times as much. @param {number} relative */
export function changeWords(relative) {
  return relative < 10 ? percent(Math.abs(relative)) : `×${shortNumber(relative + 1)}`;
}

/** @param {string} code ISO 3166-1 alpha-2 */
export function countryName(code) {
  return /^[A-Z]{2}$/.test(code) ? (REGIONS.of(code) ?? code) : code;
}

/** A value that rows are grouped by, in words. @param {string} column @param {any} value */
export function valueName(column, value) {
  if (value == null) return "(not set)";
  if (value === "") return "(empty)";
  return column === "country" ? countryName(String(value)) : String(value);
}

/** A referrer without what all have. @param {string} url */
export function referrerName(url) {
  return url.replace(/^https?:\/\/(www\.)?/, "").replace(/\/$/, "");
}

/** A bucket's `date` as a whole. @param {string} date @param {string} granularity */
export function bucketName(date, granularity) {
  const time = bucketTime(date) * 1000;
  if (granularity === "monthly") return MONTH.format(time);
  if (granularity === "weekly") return `Week of ${DATE.format(time)}`;
  return granularity === "hourly" ? `${DATE.format(time)}, ${date.slice(11, 16)}` : WHOLE_DAY.format(time);
}

/** A bucket's `date` where there is little room: its first day, or its month. @param {string} date @param {string} granularity */
export function shortBucketName(date, granularity) {
  return (granularity === "monthly" ? SHORT_MONTH : DAY).format(bucketTime(date) * 1000);
}

/** Epoch seconds of a bucket's label, as if it were in UTC. @param {string} date */
export function bucketTime(date) {
  return Date.parse(`${date.slice(0, 10)}T${date.slice(11) || "00:00:00"}Z`) / 1000;
}

/** @param {{startDate: string, endDate: string}} bounds */
export function rangeName({ startDate, endDate }) {
  const [from, to] = [Date.parse(startDate), Date.parse(endDate)];
  if (startDate === endDate) return WHOLE_DAY.format(from);
  const year = startDate.slice(0, 4) === endDate.slice(0, 4) ? "" : ` ${startDate.slice(0, 4)}`;
  return `${DAY.format(from)}${year} – ${DAY.format(to)} ${endDate.slice(0, 4)}`;
}

/** @param {string} iso a datetime of an answer @param {string} timezone */
export function datetime(iso, timezone) {
  if (!iso) return NOTHING;
  return dayFirst({ timeZone: timezone, dateStyle: "medium", timeStyle: "medium" }).format(Date.parse(iso));
}

/** A number as `format` has it, or a datetime of an answer. @param {any} value @param {string} timezone @param {(value: number) => string} format */
export function valueText(value, timezone, format) {
  if (value == null) return NOTHING;
  return typeof value === "number" ? format(value) : datetime(value, timezone);
}

/** How long ago. @param {string} iso @param {number} [now] */
export function ago(iso, now = Date.now()) {
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000);
  if (!iso || Number.isNaN(seconds)) return NOTHING;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  const days = Math.floor(seconds / 86_400);
  if (days < 61) return days === 1 ? "yesterday" : `${days} days ago`;
  const months = Math.floor(days / 30.44);
  return months < 24 ? `${months} months ago` : `${Math.floor(days / 365.25)} years ago`;
}

/** @param {number | null | undefined} count */
export function bytes(count) {
  if (count == null) return NOTHING;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / 10));
  return `${EXACT.format(Number((count / 1024 ** power).toPrecision(power ? 3 : 15)))} ${units[power]}`;
}
