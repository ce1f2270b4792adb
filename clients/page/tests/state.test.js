// Properties of the page's pure modules: what a URL says is what was shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";

import { changedFields, subjectOf } from "../../../src/headrace/http/page/state/admin/audit.js";
import { begunPeriods, together } from "../../../src/headrace/http/page/state/analyses/cohorts.js";
import * as dates from "../../../src/headrace/http/page/state/dates.js";
import * as erasures from "../../../src/headrace/http/page/state/admin/erasures.js";
import * as filters from "../../../src/headrace/http/page/state/filters.js";
import * as format from "../../../src/headrace/http/page/state/format.js";
import * as funnelSteps from "../../../src/headrace/http/page/state/analyses/funnel_steps.js";
import { beforeFirst, fittingRange, mayBeginLater, sinceFirst } from "../../../src/headrace/http/page/state/first_days.js";
import { numberOf, parseJson } from "../../../src/headrace/http/page/state/json.js";
import { DEFAULT_STATE, formatUrl, parseUrl, VIEWS } from "../../../src/headrace/http/page/state/page_state.js";
import { changedRetention, daysOf, expiringDays, leftToService } from "../../../src/headrace/http/page/state/admin/retention.js";
import { exactVital, ordered, vitalValue, worstFirst } from "../../../src/headrace/http/page/state/analyses/vitals.js";
import { splitOpen } from "../../../src/headrace/http/page/state/rows.js";

const text = fc.string({ unit: "grapheme", maxLength: 40 });
const date = fc
  .date({ min: new Date("1999-12-31"), max: new Date("2040-01-01"), noInvalidDate: true })
  .map((day) => day.toISOString().slice(0, 10));
const range = fc.oneof(
  fc.integer({ min: 1, max: dates.MAX_DAYS }).map((last) => ({ last })),
  fc.constantFrom(DEFAULT_STATE.range, { last: 1, isFitted: true }, { isAll: true }),
  fc.tuple(date, date).map((days) => ({ from: days.toSorted()[0], to: days.toSorted()[1] })),
);
const scalar = fc.oneof(text, fc.integer(), fc.boolean());
const single = fc.record({
  field: text,
  operator: fc.constantFrom(...Object.keys(filters.OPERATOR_WORDS)),
  value: fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })),
});
const { item } = fc.letrec((tie) => ({
  item: fc.oneof(
    { maxDepth: 2 },
    single,
    fc.record({ or: fc.array(tie("item"), { maxLength: 3 }) }),
    fc.record({ and: fc.array(tie("item"), { maxLength: 3 }) }),
  ),
}));
const state = fc.record({
  view: fc.constantFrom(...VIEWS),
  item: fc.array(text, { maxLength: 2 }).map((parts) => parts.join("/")),
  website: text,
  range,
  timezone: fc.constantFrom("", "UTC", "Europe/Lisbon", "Asia/Kathmandu", "America/Argentina/Buenos_Aires"),
  granularity: fc.constantFrom("", "hourly", "daily", "weekly", "monthly"),
  compare: fc.constantFrom("previous_period", "previous_year", "none"),
  filters: fc.array(item, { maxLength: 4 }),
  metric: text,
  query: text,
});
const plain = (/** @type {unknown} */ value) => JSON.parse(JSON.stringify(value));

test("a URL that was made of a state means that state", () => {
  fc.assert(
    fc.property(state, (shown) => {
      fc.pre(!shown.item.split("/").some((part) => part === "." || part === ".."));
      fc.pre(shown.item === "" || shown.view !== "overview");
      assert.deepEqual(plain(parseUrl(formatUrl(shown))), plain(shown));
    }),
    { numRuns: 500 },
  );
});

test("any URL has a meaning, and its canonical form has the same", () => {
  fc.assert(
    fc.property(fc.webQueryParameters(), fc.constantFrom("from", "to", "last", "filters", "timezone", "x"), (query, name) => {
      const once = formatUrl(parseUrl(`/app/errors?${name}=${query}`));
      assert.equal(formatUrl(parseUrl(once)), once);
    }),
  );
});

test("a shifted range is as long and touches the range it came from", () => {
  fc.assert(
    fc.property(date, fc.integer({ min: 0, max: 900 }), (startDate, days) => {
      const bounds = { startDate, endDate: dates.addDays(startDate, days) };
      const before = dates.shifted(bounds, -1);
      assert.equal(dates.dayCount(before), dates.dayCount(bounds));
      assert.equal(dates.addDays(before.endDate, 1), startDate);
      assert.deepEqual(dates.shifted(before, 1), bounds);
    }),
  );
});

test("the range after is as long, and ends today where it would reach into the future", () => {
  fc.assert(
    fc.property(date, fc.integer({ min: 0, max: 900 }), fc.integer({ min: 1, max: 2000 }), (startDate, days, daysLeft) => {
      const bounds = { startDate, endDate: dates.addDays(startDate, days) };
      const today = dates.addDays(bounds.endDate, daysLeft);
      const after = dates.following(bounds, today);
      assert.equal(dates.dayCount(after), dates.dayCount(bounds));
      assert.equal(after.endDate, dates.addDays(bounds.endDate, Math.min(days + 1, daysLeft)));
    }),
  );
});

test("the last days end today, in the zone of the page", () => {
  const now = Date.parse("2026-03-01T03:30:00Z");
  assert.deepEqual(dates.boundsOf({ last: 2 }, "Asia/Tokyo", now), { startDate: "2026-02-28", endDate: "2026-03-01" });
  assert.deepEqual(dates.boundsOf({ last: 2 }, "America/New_York", now), { startDate: "2026-02-27", endDate: "2026-02-28" });
});

test("all days begin with the first row in the zone of the page, and are ten years at most", () => {
  const now = Date.parse("2026-03-01T03:30:00Z");
  const all = (/** @type {string} */ first, timezone = "UTC") => dates.boundsOf({ isAll: true }, timezone, now, first);
  assert.deepEqual(all("2024-12-31T23:30:00.000Z"), { startDate: "2024-12-31", endDate: "2026-03-01" });
  assert.deepEqual(all("2024-12-31T23:30:00.000Z", "Asia/Tokyo"), { startDate: "2025-01-01", endDate: "2026-03-01" });
  assert.equal(dates.dayCount(all("2001-01-01T00:00:00.000Z")), dates.MAX_DAYS);
  assert.deepEqual(["", "2026-03-01T12:00:00.000Z", "2026-03-02T03:00:00.000Z"].map((first) => all(first).startDate), ["2026-03-01", "2026-03-01", "2026-03-01"]);
});

test("a website opens with the days that it has, an older one with the default", () => {
  const lasts = [0, 1, 2, 6, 7, 13, 14, 400].map((days) => fittingRange(dates.addDays("2026-03-20", -days), "2026-03-20")?.last);
  assert.deepEqual(lasts, [1, 3, 3, 7, 14, 14, undefined, undefined]);
});

test("a range that begins before the first day lacks all or a part of what is compared", () => {
  const bounds = { startDate: "2026-03-20", endDate: "2026-03-21" };
  const lacking = (/** @type {string} */ compare, /** @type {string} */ firstDay) => beforeFirst(bounds, compare, firstDay);
  assert.deepEqual(["2026-03-20", "2026-03-19", "2026-03-18", ""].map((day) => lacking("previous_period", day)), ["all", "part", "none", "none"]);
  assert.deepEqual([lacking("previous_year", "2025-03-22"), lacking("none", "2026-03-20")], ["all", "none"]);
});

test("a website may begin later where the first bucket of all is quiet", () => {
  const some = { visitors: 1, pageViews: 0, sessions: 0 };
  const none = { visitors: 0, pageViews: 0, sessions: 0, bounceRate: null };
  const figures = (/** @type {any} */ ...timeseries) => ({ summary: some, timeseries });
  const compared = (/** @type {any} */ previous) => figures({ ...some, previous }, { ...some, previous: some });
  assert.deepEqual([compared(none), compared(null), figures(none, some), figures()].map(mayBeginLater), [true, true, true, true]);
  assert.deepEqual([compared(some), figures(some)].map(mayBeginLater), [false, false]);
});

test("what is compared begins with the first event", () => {
  const [some, none] = [{ visitors: 1 }, { visitors: 0 }];
  const given = { online: 1, summary: { ...some, previous: some }, timeseries: [none, some, none].map((previous) => ({ ...some, previous })) };
  assert.deepEqual(plain(sinceFirst(given)), { online: 1, summary: some, timeseries: [some, { ...some, previous: some }, { ...some, previous: none }] });
  assert.deepEqual(plain(sinceFirst({ ...given, timeseries: [{ ...some, previous: none }, { ...some, previous: null }] })).timeseries, [some, some]);
});

test("a bucket has begun when its first moment is there", () => {
  const now = Date.parse("2026-03-01T03:30:00Z");
  const labels = ["2026-03-01 03:00:00", "2026-03-01 04:00:00", "2026-03-01", "2026-03-02"];
  assert.deepEqual(labels.map((label) => dates.hasBegun(label, "UTC", now)), [true, false, true, false]);
  assert.equal(dates.hasBegun("2026-03-01 12:00:00", "Asia/Tokyo", now), true);
});

test("a year before 29 February is 28 February", () => {
  const bounds = { startDate: "2024-02-29", endDate: "2024-03-01" };
  assert.deepEqual(dates.comparedBounds(bounds, "previous_year"), { startDate: "2023-02-28", endDate: "2023-03-01" });
});

test("an impossible day is no day", () => {
  assert.deepEqual(["2026-02-30", "2026-2-03", "", "2026-02-03"].map(dates.isDate), [false, false, false, true]);
});

test("a filter that is clicked twice is gone", () => {
  fc.assert(
    fc.property(fc.uniqueArray(item, { selector: JSON.stringify, maxLength: 4 }), single, (items, clicked) => {
      fc.pre(!items.some((other) => JSON.stringify(other) === JSON.stringify(clicked)));
      assert.deepEqual(filters.toggled(filters.toggled(items, clicked), clicked), items);
    }),
  );
});

test("a filter is the same one in whatever order its keys are", () => {
  const written = { operator: "eq", value: "DE", field: "country" };
  const clicked = { field: "country", operator: "eq", value: "DE" };
  assert.equal(filters.hasFilter([{ or: [written] }], { or: [clicked] }), true);
  assert.deepEqual(filters.withFilter([written], clicked), [written]);
  assert.deepEqual(filters.toggled([written], clicked), []);
  assert.equal(filters.hasFilter([written], { ...clicked, value: "FR" }), false);
});

test("a filter is there once, however often it is added", () => {
  fc.assert(
    fc.property(fc.uniqueArray(item, { selector: JSON.stringify, maxLength: 4 }), single, (items, added) => {
      const once = filters.withFilter(items, added);
      assert.deepEqual(once.filter((other) => JSON.stringify(other) === JSON.stringify(added)).length, 1);
      assert.deepEqual(filters.withFilter(once, added), once);
    }),
  );
});

test("numbers below 10,000 are shown exactly", () => {
  assert.deepEqual([0, 9999, 10_000, 1_234_567, 9.99e14, 1e15, -1.25e20, null].map(format.shortNumber), ["0", "9,999", "10K", "1.23M", "999T", "1E15", "-1.25E20", "–"]);
});

test("durations are read at a glance", () => {
  assert.deepEqual([0, 0.25, 59.4, 61, 3660, 86_399, 86_400, 277_560, null].map(format.duration), ["0s", "250 ms", "59s", "1m 01s", "1h 1m", "23h 59m", "1d 0h", "3d 5h", "–"]);
});

test("the time since then has the largest unit that tells enough", () => {
  const now = Date.parse("2026-11-26T12:00:00Z");
  const days = [0, 1, 2, 60, 61, 240, 365, 729, 731, 1500].map((count) => new Date(now - 86_400_000 * count).toISOString());
  assert.deepEqual(days.map((iso) => format.ago(iso, now)), [
    "just now", "yesterday", "2 days ago", "60 days ago", "2 months ago", "7 months ago", "11 months ago", "23 months ago", "2 years ago", "4 years ago",
  ]);
});

test("a step of a funnel without a name is called by its only filter", () => {
  const named = (/** @type {string} */ operator, /** @type {any} */ value) => ({ field: "event_name", operator, value });
  assert.deepEqual(
    [
      { name: "Bought", filters: [named("eq", "purchase")] },
      { filters: [named("eq", "purchase")] },
      { filters: [named("in", ["search", "add_to_cart"])] },
      { filters: [named("ne", "purchase")] },
      { filters: [{ or: [named("eq", "a"), { field: "path", operator: "is_set" }] }] },
      { filters: [named("eq", "a"), named("ne", "b")] },
      { filters: [named("eq", "")] },
      {},
    ].map((step, index) => funnelSteps.stepName(/** @type {any} */ (step), index + 1)),
    ["Bought", "purchase", "search, add_to_cart", "Event is not purchase", "Event is a or Page is set", "Step 6", "Step 7", "Step 8"],
  );
});

test("a line of the audit log shows the fields that changed, and what it is about", () => {
  const before = { id: "web_1", name: "Blog", public: false, origins: [], retention: { days: null } };
  const update = { object: "web_1", before, after: { ...before, public: true, retention: { days: 7 } } };
  assert.deepEqual(changedFields(update), [
    { field: "public", before: "false", after: "true" },
    { field: "retention", before: '{"days":null}', after: '{"days":7}' },
  ]);
  assert.deepEqual(changedFields({ before: null, after: { name: "Blog", expires: null } }), [{ field: "name", before: "–", after: "Blog" }]);
  assert.deepEqual(changedFields({ before: { name: "Blog" }, after: null }), [{ field: "name", before: "Blog", after: "–" }]);
  assert.deepEqual(changedFields({ before: null, after: null }), []);
  const lines = [update, { object: "key_1", before: null, after: { prefix: "hr_1" } }, { object: "era_1", before: null, after: { rows: 1 } }, { object: null, before: null, after: null }];
  assert.deepEqual(lines.map(subjectOf), ["Blog", "hr_1", "era_1", ""]);
});

test("a table has its own number of days, else that of all tables, else the service's", () => {
  const now = Date.parse("2026-03-10T03:30:00Z");
  const found = expiringDays({ days: 30, events: 7, errors: 0, performance: null }, now);

  assert.deepEqual(found.map(({ table, endDate }) => [table, endDate]), [["events", "2026-03-02"], ["performance", "2026-02-07"]]);
  assert.deepEqual(found.map(({ startDate, endDate }) => dates.dayCount({ startDate, endDate })), [dates.MAX_DAYS, dates.MAX_DAYS]);
  assert.deepEqual(expiringDays({ days: null, events: null }, now), []);
});

test("only fields with another number of days are changed", () => {
  assert.deepEqual(changedRetention({ days: 30, errors: 7 }, { days: 30, events: 400, errors: null, performance: null }), { events: 400, errors: null });
  assert.deepEqual(["", " 30 ", "0", "-1", "1.5", "many"].map(daysOf), [null, 30, 0, undefined, undefined, undefined]);
});

test("cohorts together leave out the period that goes on and those that have not begun", () => {
  const rows = [
    { size: 10, returned: [10, 5, 2] },
    { size: 30, returned: [30, 3, null] },
    { size: 60, returned: [20, null, null] },
  ];
  assert.deepEqual([0, 1, 2].map((index) => together(rows, index)), [{ count: 40, size: 40 }, { count: 5, size: 10 }, { count: 2, size: 10 }]);
  assert.deepEqual(together([], 0), { count: null, size: 0 });
});

test("periods that no cohort has reached are not shown", () => {
  assert.equal(begunPeriods([{ size: 10, returned: [10, 5, null, null] }, { size: 30, returned: [30, null, null, null] }]), 2);
  assert.equal(begunPeriods([{ size: 1, returned: [1, 0] }]), 2);
  assert.equal(begunPeriods([]), 0);
});

test("a line and its open end have the same length and meet in one point", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { minLength: 1 }), fc.nat(), (values, number) => {
      const index = number % values.length;
      const { whole, open } = splitOpen(values, index);
      assert.deepEqual(values.map((_, at) => whole[at] ?? open[at]), values.map((value, at) => (at <= index ? value : null)));
      assert.deepEqual(values.flatMap((_, at) => (whole[at] !== null && open[at] !== null ? [at] : [])), index > 0 ? [index - 1] : []);
    }),
  );
  assert.deepEqual(splitOpen([1, 2], -1), { whole: [1, 2], open: [] });
});

test("the bucket that goes on is the one with the current time in the zone of the labels", () => {
  const now = Date.parse("2026-11-25T23:30:00Z");
  const open = (/** @type {string} */ granularity, /** @type {string[]} */ labels, zone = "UTC") => labels[dates.openBucket(labels, granularity, zone, now)];
  assert.equal(open("daily", ["2026-11-24", "2026-11-25", "2026-11-26"]), "2026-11-25");
  assert.equal(open("daily", ["2026-11-24", "2026-11-25", "2026-11-26"], "Europe/Berlin"), "2026-11-26");
  assert.equal(open("daily", ["2026-11-23", "2026-11-24"]), undefined);
  assert.equal(open("hourly", ["2026-11-25 22:00:00", "2026-11-25 23:00:00"]), "2026-11-25 23:00:00");
  assert.equal(open("weekly", ["2026-11-16", "2026-11-23", "2026-11-30"]), "2026-11-23");
  assert.equal(open("weekly", ["2026-11-09", "2026-11-16"]), undefined);
  assert.equal(open("monthly", ["2026-10-01", "2026-11-01", "2026-12-01"]), "2026-11-01");
  assert.equal(open("monthly", []), undefined);
});

test("of two hours with one label, the first goes on until the second begins", () => {
  const labels = ["01:00:00", "02:00:00", "02:00:00", "03:00:00"].map((time) => `2026-10-25 ${time}`);
  const open = (/** @type {string} */ utc) => dates.openBucket(labels, "hourly", "Europe/Berlin", Date.parse(`2026-10-25T${utc}:30Z`));
  assert.deepEqual(["00:00", "00:59", "01:00", "01:59", "02:00"].map((utc) => open(utc)), [1, 1, 2, 2, 3]);
});

test("a browser that does not know its zone has UTC", () => {
  const { resolvedOptions } = Intl.DateTimeFormat.prototype;
  const zoneWhere = (/** @type {any} */ timeZone) => {
    Intl.DateTimeFormat.prototype.resolvedOptions = function () {
      return { ...resolvedOptions.call(this), timeZone };
    };
    try {
      return dates.localTimezone();
    } finally {
      Intl.DateTimeFormat.prototype.resolvedOptions = resolvedOptions;
    }
  };
  assert.deepEqual(["Etc/Unknown", undefined, "Europe/Lisbon"].map(zoneWhere), ["UTC", "UTC", "Europe/Lisbon"]);
});

test("a range touches at most so many buckets", () => {
  const bounds = { startDate: "2026-03-01", endDate: "2026-03-30" };
  assert.deepEqual(["hourly", "daily", "weekly", "monthly"].map((name) => dates.bucketCount(bounds, name)), [721, 30, 6, 3]);
});

test("dates have the day first and months of three letters", () => {
  assert.equal(format.rangeName({ startDate: "2026-09-02", endDate: "2026-10-01" }), "2 Sep – 1 Oct 2026");
  assert.equal(format.rangeName({ startDate: "2025-12-31", endDate: "2026-01-01" }), "31 Dec 2025 – 1 Jan 2026");
  const names = [["2026-09-01", "monthly"], ["2026-09-07", "weekly"], ["2026-09-07", "daily"], ["2026-09-07 14:00:00", "hourly"]].map(([label, granularity]) => format.bucketName(String(label), String(granularity)));
  assert.deepEqual(names, ["September 2026", "Week of 7 Sep 2026", "Mon, 7 Sep 2026", "7 Sep 2026, 14:00"]);
  assert.equal(format.datetime("2026-09-02T23:30:00.000Z", "Europe/Berlin"), "3 Sep 2026, 01:30:00");
  assert.deepEqual([0, 0.0004, 0.0005, 0.004, 0.5, 1].map(format.percent), ["0%", "<0.1%", "0.1%", "0.4%", "50.0%", "100%"]);
});

test("a change has no meaning beside nothing", () => {
  assert.deepEqual([[3, 2], [2, 2], [0, 2], [2, 0], [0, 0], [null, 2], [2, null]].map(([now, before]) => format.change(now, before)), [0.5, 0, -1, null, null, null, null]);
});

test("a filter names countries, and says what is empty", () => {
  const words = (/** @type {import("../../../src/headrace/http/page/state/filters.js").FilterItem} */ item) => filters.filterSentence(item);
  assert.equal(words({ field: "country", operator: "in", value: ["DE", "US", ""] }), "Country is one of Germany, United States, (empty)");
  assert.equal(words({ field: "city", operator: "not_in", value: ["Washington, D.C.", "Bonn"] }), "City is none of “Washington, D.C.”, Bonn");
  assert.equal(words({ field: "city", operator: "eq", value: "Washington, D.C." }), "City is Washington, D.C.");
  assert.equal(words({ or: [{ field: "path", operator: "eq", value: "DE" }, { field: "country", operator: "is_set" }] }), "Page is DE or Country is set");
});

test("an erasure names one subject, and a value of the chosen type", () => {
  const chosen = (/** @type {object} */ changes) => ({ ...erasures.emptySelection(), ...changes });
  const property = { selector: "property", key: "plan" };
  const selections = [
    chosen({ value: "ann", withVisitors: true }),
    chosen({ selector: "profileId", value: "7", withVisitors: true }),
    chosen({ ...property, value: "5" }),
    chosen({ ...property, value: "5", type: "number" }),
    chosen({ ...property, value: "True", type: "boolean" }),
  ];
  assert.deepEqual(selections.map(erasures.selectorOf), [
    { anonymousId: "ann" },
    { profileId: "7", withVisitors: true },
    { property: { key: "plan", value: "5" } },
    { property: { key: "plan", value: 5 } },
    { property: { key: "plan", value: true } },
  ]);
  assert.ok(selections.every(erasures.isComplete));
  const unfinished = [chosen({}), chosen({ selector: "property", value: "5" }), chosen({ ...property, value: "x", type: "number" }), chosen({ ...property, value: "1", type: "boolean" })];
  assert.ok(!unfinished.some(erasures.isComplete));
  assert.deepEqual(unfinished.map(erasures.problemOf), ["", "", "This is no number.", "Write true or false."]);
  assert.deepEqual(selections.map(erasures.problemOf), ["", "", "", "", ""]);
});

test("a change is a share, and beyond ten times as much a factor", () => {
  const words = [[3, 4], [4, 3], [1, 10.9], [1, 11], [2, 4_000_000_000]].map(([before, now]) => format.changeWords(Number(format.change(now, before))));
  assert.deepEqual(words, ["33.3%", "25.0%", "990.0%", "×11", "×2B"]);
});

test("a table without a number any more is kept as long as the service says", () => {
  const none = { days: null, events: null, errors: null, performance: null };
  assert.deepEqual(leftToService({ ...none, days: 400 }, none), ["events", "errors", "performance"]);
  assert.deepEqual(leftToService({ ...none, days: 400, errors: 30 }, { ...none, errors: 30 }), ["events", "performance"]);
  assert.deepEqual(leftToService({ ...none, errors: 30 }, { ...none, days: 400 }), []);
  assert.deepEqual(leftToService(none, { ...none, errors: 30 }), []);
});

test("a web vital is short however large it is, and its title has all digits", () => {
  const shown = (/** @type {string} */ metric, /** @type {number[]} */ values) => values.map((value) => vitalValue(metric, value));
  assert.deepEqual(shown("LCP", [0.2, 613.4, 999.6, 2500.4, 9_999_990, 1e12, 1e300]), ["0 ms", "613 ms", "1.00 s", "2.50 s", "9999.99 s", "1B s", "1E297 s"]);
  assert.deepEqual(shown("CLS", [0.0876, 12.3456, 1e12]), ["0.088", "12.346", "1T"]);
  assert.deepEqual(shown("FPS", [59.6, 1e12]), ["60 fps", "1T fps"]);
  assert.deepEqual([exactVital("LCP", 2500.4), exactVital("CLS", 0.0876), exactVital("FPS", 59.6), exactVital("LCP", null)], ["2,500.4 ms", "0.088", "59.6 fps", "–"]);
});

test("the worst web vitals are the slowest, and the fewest frames a second", () => {
  const worst = (/** @type {string} */ metric) => ordered([2, 3, 1].map((p75) => ({ p75 })), worstFirst(metric)).map(({ p75 }) => p75);
  assert.deepEqual(["LCP", "CLS", "FPS"].map(worst), [[3, 2, 1], [3, 2, 1], [1, 2, 3]]);
});

test("rows with the same value keep their order, and those without one are last", () => {
  const rows = [{ name: "a", share: 1 }, { name: "b", share: null }, { name: "c", share: 2 }, { name: "d", share: 1 }];
  const names = (/** @type {"asc" | "desc"} */ direction) => ordered(rows, { field: "share", direction }).map(({ name }) => name).join("");
  assert.deepEqual([names("asc"), names("desc")], ["adcb", "cadb"]);
});

test("whole numbers of any size are those that were written", { skip: "rawJSON" in JSON ? false : "this Node.js rounds them" }, () => {
  fc.assert(
    fc.property(fc.bigInt(), (number) => {
      const written = `{"value":[${number},"${number}"]}`;
      assert.equal(JSON.stringify(parseJson(written)), written);
      assert.equal(String(numberOf(` ${number} `)), String(number));
    }),
  );
  const selection = { ...erasures.emptySelection(), selector: "property", key: "order", value: "9007199254740993", type: "number" };
  assert.equal(JSON.stringify(erasures.selectorOf(selection)), '{"property":{"key":"order","value":9007199254740993}}');
  assert.deepEqual(["9007199254740991", "9007199254740993", "-1.5", "1e3", "1e400", "", "x"].map(numberOf), [9007199254740991, 9007199254740993n, -1.5, 1000, undefined, undefined, undefined]);
});

test("whole numbers are exact with the keys that are named, and numbers with others", { skip: "rawJSON" in JSON ? false : "this Node.js rounds them" }, () => {
  assert.deepEqual(parseJson('{"group":9007199254740993,"sum":9007199254740993}', ["group"]), { group: 9007199254740993n, sum: 9007199254740992 });
});

test("numbers that are rounded anyway stay numbers", () => {
  assert.deepEqual(parseJson('[1, -0.5, 1e20, 9007199254740993.0, "9007199254740993"]'), [1, -0.5, 1e20, 9007199254740992, "9007199254740993"]);
});
