"""The schema of a website: names and keys of its latest events, over chDB and as an oracle says."""

import asyncio
import json
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.base.clock import FixedClock
from headrace.model.catalog import EVENTS
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.query.schema.service import EventName, PropertyKey, SchemaService, WebsiteSchema
from testing.chdb import FreshStore
from testing.examples import examples
from testing.queries import WEBSITE, execution_over
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables

NOW_MS = 1_767_790_800_000  # 2026-01-07T13:00Z
FIRST_MS = 1_765_238_400_000  # 2025-12-09T00:00Z, the first of thirty days
DAY_MS = 86_400_000
LONG = 2**70


def event(name: str = "click", at: int = NOW_MS, **columns: Any) -> dict[str, Any]:
    properties = columns.pop("properties", None)
    text = json.dumps(properties, ensure_ascii=False, separators=(",", ":")).encode()
    return {
        "website_id": WEBSITE,
        "event_name": name,
        "time": at,
        "properties": b"" if properties is None else text,
        **columns,
    }


def describe(tables: Tables, cutoffs: Cutoffs = NO_CUTOFFS) -> WebsiteSchema:
    service = SchemaService(execution_over(tables, FixedClock(NOW_MS), cutoffs))
    return asyncio.run(service.describe(WEBSITE))


def keys_of(tables: Tables, *documents: dict[str, Any]) -> list[PropertyKey]:
    tables.insert(EVENTS, [event(properties=document) for document in documents])
    return list(describe(tables).properties)


@pytest.fixture(params=EACH_QUERIED_STORE)
def tables(request: pytest.FixtureRequest) -> Any:
    """Empty tables of each kind of store."""
    with made_tables(request, request.param) as made:
        yield made


def test_names_are_counted_and_the_most_frequent_come_first(tables: Tables) -> None:
    tables.insert(
        EVENTS,
        [
            *(event("b", at=FIRST_MS + number) for number in range(3)),
            *(event(name, at=NOW_MS) for name in ("c", "a", "é")),
            event("before", at=FIRST_MS - 1),
            event("bot", is_bot=True),
            event("foreign", website_id="web_2"),
        ],
    )
    now = "2026-01-07T13:00:00.000Z"
    assert describe(tables).event_names == [
        EventName("b", 3, "2025-12-09T00:00:00.002Z"),
        *(EventName(name, 1, now) for name in ("a", "c", "é")),
    ]


def test_keys_have_the_kinds_of_their_values(tables: Tables) -> None:
    assert keys_of(
        tables,
        {"plan": "pro", "seats": 3, "trial": True, "items": [1, {"deep": 2}], "none": None},
        {"plan": 5, "seats": -0.5, "trial": False, "items": {"deep": 1}, "a.b": "", 'q"': 1e30},
        {"plan": None, "seats": 3},
    ) == [
        PropertyKey("seats", ("number",), 3),
        PropertyKey("items", ("json",), 2),
        PropertyKey("plan", ("text", "number"), 2),
        PropertyKey("trial", ("boolean",), 2),
        PropertyKey("a.b", ("text",), 1),
        PropertyKey('q"', ("number",), 1),
    ]


def test_long_numbers_are_numbers_and_texts_of_their_digits_are_texts(tables: Tables) -> None:
    assert keys_of(
        tables,
        {"number": LONG, "text": str(LONG), "negative": -LONG, "deep": {"text": LONG}},
        {"either": LONG, str(LONG): 1, "list": [LONG, str(LONG)]},
        {"either": str(LONG)},
    ) == [
        PropertyKey("either", ("text", "number"), 2),
        PropertyKey(str(LONG), ("number",), 1),
        PropertyKey("deep", ("json",), 1),
        PropertyKey("list", ("json",), 1),
        PropertyKey("negative", ("number",), 1),
        PropertyKey("number", ("number",), 1),
        PropertyKey("text", ("text",), 1),
    ]


def test_expired_events_and_those_of_bots_and_of_others_have_no_keys(tables: Tables) -> None:
    tables.insert(
        EVENTS,
        [
            event(properties={"kept": 1}, at=NOW_MS - DAY_MS),
            event(properties={"expired": 1}, at=NOW_MS - 2 * DAY_MS),
            event(properties={"bot": 1}, is_bot=True),
            event(properties={"foreign": 1}, website_id="web_2"),
            event(),
        ],
    )
    cutoffs = Cutoffs(events=(NOW_MS // DAY_MS - 1) * DAY_MS)
    assert describe(tables, cutoffs).properties == [PropertyKey("kept", ("number",), 1)]
    assert describe(tables, cutoffs).event_names == [
        EventName("click", 2, "2026-01-07T13:00:00.000Z")
    ]


def test_a_thousand_of_each_are_listed(chdb_store: FreshStore) -> None:
    chdb_store.insert(
        EVENTS, [event(f"name {n:04}", properties={f"key {n:04}": n}) for n in range(1001)]
    )
    described = describe(chdb_store)
    assert [one.name for one in described.event_names] == [f"name {n:04}" for n in range(1000)]
    assert [one.key for one in described.properties] == [f"key {n:04}" for n in range(1000)]


def test_website_without_events_has_neither(chdb_store: FreshStore) -> None:
    assert describe(chdb_store) == WebsiteSchema([], [])


_KEYS = st.sampled_from(("a", "b", "a.b", "", '"', "\\", "é", "🦆", "k,", ":", "null", "7" * 20))
_SCALARS = st.sampled_from(
    (None, True, False, 0, -0.0, 1e300, 0.1, LONG, -LONG, str(LONG), "", "true", "null", '"', "[")
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3)
)
_DOCUMENTS = st.lists(st.none() | st.dictionaries(_KEYS, _VALUES, max_size=5), max_size=30)
_ORDER = ("text", "number", "boolean", "json")


def kind_of(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case str():
            return "text"
        case int() | float():
            return "number"
        case _:
            return "json"


def expected_keys(documents: list[dict[str, Any] | None]) -> list[PropertyKey]:
    counts, kinds = Counter[str](), defaultdict[str, set[str]](set)
    for document in documents:
        for key, value in (document or {}).items():
            if value is not None:
                counts[key] += 1
                kinds[key].add(kind_of(value))
    return [
        PropertyKey(key, tuple(kind for kind in _ORDER if kind in kinds[key]), count)
        for key, count in sorted(counts.items(), key=lambda one: (-one[1], one[0].encode()))
    ]


@settings(max_examples=examples(60))
@given(documents=_DOCUMENTS)
def test_keys_of_any_documents_are_those_of_the_oracle(
    chdb_store_of_module: FreshStore, documents: list[dict[str, Any] | None]
) -> None:
    store = chdb_store_of_module
    store.empty()
    store.insert(EVENTS, [event(properties=document) for document in documents])
    assert list(describe(store).properties) == expected_keys(documents)
