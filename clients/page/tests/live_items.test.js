import assert from "node:assert/strict";
import { test } from "node:test";

import { splitEvents } from "../../../src/headrace/http/page/state/live/event_stream.js";
import { MAX_SHOWN, faultsOf, hasText, kindOf, titleOf, withItem } from "../../../src/headrace/http/page/state/live/live_items.js";

const shown = (kind, body) => ({ kind, body, number: 1, received: "2026-01-05T10:00:00.000Z" });

test("an item is named by its table and by what it is about", () => {
  const items = [
    shown("event", { table: "events", row: { event_name: "signup" } }),
    shown("event", { table: "errors", row: { message: "", error_type: "TypeError" } }),
    shown("event", { table: "performance", row: { metric_name: "LCP", metric_value: 2178.0839661193104 } }),
    shown("event", { table: "performance", row: { metric_name: "CLS", metric_value: 0.02118302194410586 } }),
    shown("refused", { path: "/track", code: "INVALID_BODY", errors: [] }),
    shown("missed", { count: null }),
    shown("missed", { count: 3 }),
    shown("missed", { count: 1 }),
    shown("missed", { count: null, from: "2026-01-05T09:58:07.900Z", to: "2026-01-05T10:00:00.000Z" }),
    shown("missed", { count: 3, from: "2026-01-05T22:59:59.000Z", to: "2026-01-05T23:00:00.000Z" }),
    shown("missed", { count: 1, from: "2026-01-05T09:58:07.900Z", to: "2026-01-05T10:00:00.000Z" }),
  ];
  assert.deepEqual(items.map((item) => [kindOf(item), titleOf(item, "Europe/Berlin")]), [
    ["event", "signup"],
    ["error", "TypeError"],
    ["vital", "LCP 2.18 s"],
    ["vital", "CLS 0.021"],
    ["refused", "/track: INVALID_BODY"],
    ["missed", "Some items were left out"],
    ["missed", "3 items were left out"],
    ["missed", "1 item was left out"],
    ["missed", "The stream was interrupted from 10:58:07 to 11:00:00: items may be missing"],
    ["missed", "The stream was interrupted from 5 Jan 2026, 23:59:59 to 6 Jan 2026, 00:00:00: 3 items are missing"],
    ["missed", "The stream was interrupted from 10:58:07 to 11:00:00: 1 item is missing"],
  ]);
});

test("faults are sentences that count items from one", () => {
  const errors = [{ index: 0, field: "name", message: "is required" }, { index: 2, field: "", message: "must be an object" }];
  assert.deepEqual(faultsOf(shown("refused", { path: "/track", code: "INVALID_BODY", errors })), [
    "The body breaks a rule, so nothing of the call was stored.",
    "Item 1, name: is required",
    "Item 3: must be an object",
  ]);
  assert.deepEqual(faultsOf(shown("refused", { path: "/", code: "NEW", errors: [] })), ["The call was refused."]);
  assert.deepEqual(faultsOf(shown("event", { table: "events", row: {} })), []);
});

test("the newest items are kept, and the filter takes any text in any case", () => {
  const items = Array.from({ length: MAX_SHOWN }, (_, number) => ({ ...shown("event", { table: "events", row: {} }), number }));
  const more = withItem(items, shown("event", { table: "events", row: { event_name: "Ümlaut" } }));
  assert.equal(more.length, MAX_SHOWN);
  assert.equal(more.filter((item) => hasText(item, "üMLAUT")).length, 1);
  assert.equal(more.filter((item) => hasText(item, "")).length, MAX_SHOWN);
  assert.equal(hasText(shown("missed", { count: null }), "Ümlaut"), true);
});

test("events are read from any pieces of a stream, with its comments", () => {
  const whole = ':\n\nevent: event\nid: a-1\ndata: {"text":"event: x"}\n\n:\n\nevent: missed\nid: a-2\ndata: {"count":null}\n\n';
  const expected = [
    { kind: "", id: "", data: "" },
    { kind: "event", id: "a-1", data: '{"text":"event: x"}' },
    { kind: "", id: "", data: "" },
    { kind: "missed", id: "a-2", data: '{"count":null}' },
  ];
  for (let size = 1; size <= whole.length; size += 1) {
    const found = [];
    let text = "";
    for (let start = 0; start < whole.length; start += size) {
      const { events, rest } = splitEvents(text + whole.slice(start, start + size));
      found.push(...events);
      text = rest;
    }
    assert.deepEqual([found, text], [expected, ""]);
  }
});
