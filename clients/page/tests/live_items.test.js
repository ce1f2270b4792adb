import assert from "node:assert/strict";
import { test } from "node:test";

import { MAX_SHOWN, faultsOf, hasText, kindOf, titleOf, withItem } from "../../../src/headrace/http/page/state/live_items.js";

const shown = (kind, body) => ({ kind, body, number: 1, received: "2026-01-05T10:00:00.000Z" });

test("an item is named by its table and by what it is about", () => {
  const items = [
    shown("event", { table: "events", row: { event_name: "signup" } }),
    shown("event", { table: "errors", row: { message: "", error_type: "TypeError" } }),
    shown("event", { table: "performance", row: { metric_name: "LCP", metric_value: 7 } }),
    shown("refused", { path: "/track", code: "INVALID_BODY", errors: [] }),
    shown("missed", { count: null }),
    shown("missed", { count: 3 }),
  ];
  assert.deepEqual(items.map((item) => [kindOf(item), titleOf(item)]), [
    ["event", "signup"],
    ["error", "TypeError"],
    ["vital", "LCP 7"],
    ["refused", "/track: INVALID_BODY"],
    ["missed", "Some items were left out"],
    ["missed", "3 items were left out"],
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
  const items = Array.from({ length: MAX_SHOWN }, (_, number) => ({ ...shown("missed", { count: number }), number }));
  const more = withItem(items, shown("event", { table: "events", row: { event_name: "Ümlaut" } }));
  assert.equal(more.length, MAX_SHOWN);
  assert.equal(more.filter((item) => hasText(item, "üMLAUT")).length, 1);
  assert.equal(more.filter((item) => hasText(item, "")).length, MAX_SHOWN);
});
