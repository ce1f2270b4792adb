// A query as a sentence: what is changed at a place, where a refusal belongs, what is copied.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";

import { COPIES } from "../../../src/headrace/http/page/state/copy_as.js";
import { withPropertyColumns } from "../../../src/headrace/http/page/state/property_columns.js";
import { parseBody, withAt } from "../../../src/headrace/http/page/state/query_body.js";
import { corrected, locate } from "../../../src/headrace/http/page/state/refusals.js";
import { applicableTables, BREAKDOWNS } from "../../../src/headrace/http/page/state/standard_types.js";

const REFUSALS = JSON.parse(readFileSync(new URL("../../../tests/golden/refusals.json", import.meta.url), "utf8"));
const is = (/** @type {string} */ field) => ({ field, operator: "eq", value: 1 });
const valueAt = (/** @type {any} */ value, /** @type {(string | number)[]} */ path) => path.reduce((inner, key) => inner?.[key], value);
const bodyWith = (/** @type {object[]} */ filters) => ({
  query: { table: "events", selects: [{ field: "*", aggregate: "count" }], filters },
});

/** The paths of the words of a sentence, as they are in the view. @param {any} body @returns {string[]} */
function wordsOf({ query, ...root }) {
  const filters = (/** @type {any[]} */ items, /** @type {any[]} */ path) => items.flatMap((item, index) => {
    const kind = "or" in item ? "or" : "and";
    return kind in item ? filters(item[kind], [...path, index, kind]) : [[...path, index]];
  });
  const entries = (/** @type {string} */ list) => Object.keys(query[list] ?? []).map((index) => ["query", list, Number(index)]);
  const lists = ["table", "selects", "filters", "groupBy"].map((name) => ["query", name]);
  const hasTop = root.granularity && query.groupBy?.length;
  const parts = ["startDate", "timezone", "granularity", "limit", "orderBy", "having", "compare", "totals", ...(hasTop ? ["top"] : [])].map((name) => [name]);
  const paths = [...lists, ...entries("selects"), ...entries("groupBy"), ...filters(query.filters ?? [], ["query", "filters"]), ...parts, []];
  return paths.map((path) => JSON.stringify(path));
}

test("every refusal of a well-formed query is shown at one of its words, or above all of them", () => {
  const found = REFUSALS.map(({ body, error, code }) => {
    const { body: parsed } = parseBody(JSON.stringify(body));
    return parsed && { error, words: wordsOf(body), ...locate({ message: error, code }, parsed) };
  }).filter(Boolean);

  assert.ok(found.length > 40);
  assert.deepEqual(found.filter(({ path, words }) => !words.includes(JSON.stringify(path))).map(({ error }) => error), []);
  const atWords = found.filter(({ path }) => path.length > 0);
  assert.ok(atWords.length > 0.6 * found.length, `${atWords.length} of ${found.length}`);
});

test("a refusal is shown at the word of its place, which it need not name then", () => {
  const select = { field: "*", aggregate: "count", filters: [is("path"), is("pth")] };
  const body = { query: { table: "events", selects: [is("x"), select], filters: [is("path"), { or: [is("path"), { and: [] }] }] } };
  const located = (/** @type {string} */ message) => {
    const { path, message: words } = locate({ message, code: "INVALID_VALUE" }, /** @type {any} */ (body));
    return [path, words];
  };

  assert.deepEqual(located('Invalid value for column "path" in query.filters[1].or[0]: eq takes a single value'), [["query", "filters", 1, "or", 0], 'Invalid value for column "path": eq takes a single value']);
  assert.deepEqual(located('Invalid operator "is" in query.selects[1].filters[1] (did you mean "eq"?)'), [["query", "selects", 1], 'Invalid operator "is" (did you mean "eq"?)']);
  assert.deepEqual(located("Too many filters in query.selects[1].filters: 6 given"), [["query", "selects", 1], "Too many filters: 6 given"]);
  assert.deepEqual(located("Too many filters in query.filters: 21 given"), [["query", "filters"], "Too many filters: 21 given"]);
  const group = "Invalid filter in query.filters[1].or[1].and: a group has at least one filter";
  assert.deepEqual(located(group), [[], group]);
  const quoted = 'Invalid value " in query.filters[0]: \\"(" for column "path" in query.filters[1].or[0]: must be a number';
  assert.deepEqual(located(quoted)[0], ["query", "filters", 1, "or", 0]);
  assert.deepEqual(located('Invalid request body: unknown key "x" (it belongs in query.filters)')[0], []);
});

test("what was meant takes the place of what was refused, and of no value", () => {
  const body = bodyWith([{ field: "pth", operator: "eq", value: "pth" }]);
  const refusal = locate({ message: 'Invalid column "pth" for table "events" (did you mean "path"?)', code: "INVALID_COLUMN" }, body);

  assert.deepEqual(refusal.path, ["query", "filters", 0]);
  assert.deepEqual(corrected(body, refusal), bodyWith([{ field: "path", operator: "eq", value: "pth" }]));
});

test("of the names that a hint has, the first takes the place where it is one for the other", () => {
  const hinted = (/** @type {string} */ hint) => locate({ message: `Invalid column "os" for table "events" (${hint})`, code: "INVALID_COLUMN" }, bodyWith([])).suggestion;

  assert.equal(hinted('did you mean "os_name"?'), "os_name");
  assert.equal(hinted('did you mean "os_name", or the property "properties.os"?'), "os_name");
  assert.equal(hinted('a property is "properties.plan"'), "properties.plan");
  assert.equal(hinted('did you mean "properties.KEY"?'), "");
  assert.equal(hinted('did you mean "gte" and "lte"?'), "");
  assert.equal(hinted('did you mean granularity "daily", or the property "properties.date"?'), "");
});

test("a column that the table does not have is shown where it stands first", () => {
  const select = { field: "*", aggregate: "count", filters: [is("path"), is("a")] };
  const body = { query: { table: "events", selects: [is("x"), select], filters: [is("path"), { or: [is("x"), { and: [is("b")] }] }, is("a")], groupBy: ["b", "c"] } };
  const shown = (/** @type {string} */ name) => locate({ message: `Invalid column "${name}" for table "events"`, code: "INVALID_COLUMN" }, /** @type {any} */ (body)).path;

  assert.deepEqual(shown("x"), ["query", "selects", 0]);
  assert.deepEqual(shown("a"), ["query", "selects", 1]);
  assert.deepEqual(shown("b"), ["query", "filters", 1, "or", 1, "and", 0]);
  assert.deepEqual(shown("c"), ["query", "groupBy", 1]);
  assert.deepEqual(shown("d"), []);
});

test("a refused column of groupBy is shown at its entry", () => {
  const body = { query: { ...bodyWith([]).query, groupBy: ["country", "brwser"] } };
  const { path } = locate({ message: 'Invalid column "brwser" for table "events"', code: "INVALID_COLUMN" }, body);

  assert.deepEqual(path, ["query", "groupBy", 1]);
  const alone = { query: { ...bodyWith([]).query, groupBy: ["brwser"] } };
  assert.deepEqual(locate({ message: 'Invalid column "brwser"', code: "INVALID_COLUMN" }, alone).path, ["query", "groupBy", 0]);
});

test("a value that is set at a path is found there, and the given body is unchanged", () => {
  const path = fc.constantFrom(["query", "filters", 0], ["query", "filters", 1, "or", 0], ["query", "filters", 2], ["limit"], ["query", "groupBy", 0]);
  fc.assert(
    fc.property(path, fc.jsonValue({ maxDepth: 1 }).filter((value) => !(Array.isArray(value) && value.length === 0)), (at, value) => {
      const body = bodyWith([is("a"), { or: [is("b"), is("c")] }]);
      const before = JSON.stringify(body);
      assert.deepEqual(valueAt(withAt(body, at, value), at), value);
      assert.equal(JSON.stringify(body), before);
    }),
  );
});

test("a group of one filter is that filter, and an empty list is none", () => {
  const body = bodyWith([is("a"), { or: [is("b"), is("c")] }]);
  const single = withAt(body, ["query", "filters", 1, "or", 0], undefined);

  assert.deepEqual(single, bodyWith([is("a"), is("c")]));
  const { query } = withAt(withAt(single, ["query", "filters", 1], undefined), ["query", "filters", 0], undefined);
  assert.equal("filters" in query, false);
});

test("a copied command passes any text through a shell unchanged", () => {
  const text = fc.string({ unit: "grapheme-composite", maxLength: 30 }).filter((one) => !one.includes("\0"));
  fc.assert(
    fc.property(text, (value) => {
      const body = bodyWith([{ field: "path", operator: "eq", value }]);
      const copied = COPIES.command({ origin: "http://127.0.0.1", website: "web_1", body });
      const printed = copied.slice(0, copied.indexOf(" |\n  headrace query"));
      assert.deepEqual(JSON.parse(execFileSync("sh", ["-c", printed], { encoding: "utf8" })), body);
    }),
    { numRuns: 25 },
  );
});

test("filters say on which tables they have a meaning", () => {
  const tables = (/** @type {string[]} */ ...fields) => [...applicableTables(fields.map(is))];

  assert.deepEqual(tables("country", "utm_source"), ["events", "sessions"]);
  assert.deepEqual(tables("path", "country"), ["events"]);
  assert.deepEqual(tables("entry_path"), ["sessions"]);
  assert.deepEqual(tables("entry_path", "path"), []);
  assert.deepEqual([...new Set(Object.values(BREAKDOWNS).map(({ table }) => table))], ["events", "sessions"]);
});

test("the keys of a website are columns in the place of any key", () => {
  const column = (/** @type {string} */ name, description = "") => ({ name, type: "json", filterable: true, aggregatable: true, description });
  const tables = [
    { name: "events", description: "", columns: [column("path"), column("properties.KEY", "any")] },
    { name: "errors", description: "", columns: [column("message")] },
  ];
  const schema = { tables, aggregates: [], operators: [], limits: {} };
  const properties = [{ key: "plan", kinds: ["text", "number"], count: 1200 }, { key: "a.b", kinds: ["json"], count: 1 }, { key: "", kinds: ["text"], count: 1 }];

  assert.deepEqual(withPropertyColumns(schema), schema);
  assert.deepEqual(withPropertyColumns({ ...schema, properties }).tables, [
    { ...tables[0], columns: [column("path"), column("properties.plan", "text, number in 1,200 events"), column("properties.a.b", "json in 1 event")] },
    tables[1],
  ]);
});

test("a query whose lists cannot be shown as words is left to its JSON", () => {
  const selects = [{ field: "*", aggregate: "count" }];
  const wrong = [
    { query: { table: "events", selects: [null] } },
    { query: { table: "events", selects: [{ aggregate: "count" }] } },
    { query: { table: "events", selects, filters: 5 } },
    { query: { table: "events", selects, filters: [{ field: "path" }] } },
    { query: { table: "events", selects: [{ field: "*", aggregate: "count", filters: [7] }] } },
    { query: { table: "events", selects, groupBy: [3] } },
    { query: { table: "events", selects }, orderBy: "path" },
    { query: { table: "events", selects }, having: [null] },
  ];
  assert.deepEqual(wrong.map((body) => parseBody(JSON.stringify(body)).body), wrong.map(() => null));
  const right = { query: { table: "events", selects, filters: null, groupBy: ["path"] }, orderBy: [{ field: "path" }], having: null };
  assert.deepEqual(parseBody(JSON.stringify(right)), { body: right, problem: "" });
});
