"""Finding and deleting the rows of an erasure, over each store."""

import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.adapters.store.chdb.row_deletion import ChdbRowDeleter
from headrace.adapters.store.chdb.row_finder import ChdbRowFinder
from headrace.adapters.store.clickhouse.row_deletion import ClickHouseRowDeleter
from headrace.adapters.store.clickhouse.row_finder import ClickHouseRowFinder
from headrace.base.clock import SystemClock
from headrace.erasure.reapplication import Reapplication
from headrace.erasure.statements import (
    compared_column,
    count_rows,
    deletions,
    find_rows,
    find_values,
)
from headrace.erasure.subjects import hash_prefixes, subject_of
from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, Table
from headrace.model.erasure import WHOLE_WEBSITE, Selector, SelectorKind
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.deletion import RowDeleter
from headrace.ports.rows.erasure import Erasure, RowFinder, RowsToErase
from headrace.ports.store import CHDB_DIALECT
from testing.chdb import FreshStore
from testing.servers.clickhouse import ClickHouseTables
from testing.tables import Tables

T = 1_700_000_000_000
DAY_MS = 86_400_000
DEADLINE_S = 120.0
AWKWARD = "an'n\\\t{x:String}"
KEY = bytes(32)


def finder_of(tables: Tables) -> RowFinder:
    if isinstance(tables, FreshStore):
        return ChdbRowFinder(tables.engine, database=tables.database)
    assert isinstance(tables, ClickHouseTables)
    return ClickHouseRowFinder(tables.address)


def deleter_of(tables: Tables) -> RowDeleter:
    if isinstance(tables, FreshStore):
        return ChdbRowDeleter(tables.engine, database=tables.database)
    assert isinstance(tables, ClickHouseTables)
    return ClickHouseRowDeleter(tables.address)


def found(tables: Tables, table: Table, *selectors: Selector, website: str = "web_1") -> list[Any]:
    query = find_rows(table, website, selectors, tables.dialect)
    assert query is not None
    finder = finder_of(tables)
    try:
        return sorted((bytes.fromhex(row_id)[-1], int(at)) for row_id, at in finder.select(query))
    finally:
        finder.close()


def delete(tables: Tables, table: Table, conditions: Sequence[str]) -> None:
    deleter = deleter_of(tables)
    deadline = time.monotonic() + DEADLINE_S
    for condition in conditions:
        deleter.begin(table, condition)
    while deleter.state(table).parts_left:
        assert time.monotonic() < deadline
    deleter.close()


def event(number: int, **columns: Any) -> dict[str, Any]:
    return {"id": number.to_bytes(16), "website_id": "web_1", "time": T + number, **columns}


def insert_examples(tables: Tables) -> None:
    tables.insert(
        EVENTS,
        [
            event(1, anonymous_id=AWKWARD, properties=b'{"email":"a@b","n":1}'),
            event(2, anonymous_id="bob", session_id="s", properties=b'{"email":"A@b","n":"1"}'),
            event(3, anonymous_id=AWKWARD, website_id="web_2"),
        ],
    )
    tables.insert(ERRORS, [{**event(4, anonymous_id=AWKWARD), "message": "m"}])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (Selector(SelectorKind.ANONYMOUS_ID, AWKWARD), [1]),
        (Selector(SelectorKind.SESSION_ID, "s"), [2]),
        (Selector(SelectorKind.EVENT_ID, bytes(15).hex() + "02"), [2]),
        (Selector(SelectorKind.PROPERTY, "a@b", "email"), [1]),
        (Selector(SelectorKind.PROPERTY, 1, "n"), [1]),
        (Selector(SelectorKind.PROPERTY, "1", "n"), [2]),
        (Selector(SelectorKind.PROPERTY, True, "n"), []),
    ],
)
def test_selectors_find_their_rows(
    chdb_store: FreshStore, selector: Selector, expected: list[int]
) -> None:
    insert_examples(chdb_store)
    assert found(chdb_store, EVENTS, selector) == [(number, T + number) for number in expected]


def test_the_rows_of_tens_of_thousands_of_visitors_are_found(tables: Tables) -> None:
    insert_examples(tables)
    visitors = [Selector(SelectorKind.ANONYMOUS_ID, f"visitor {i:06d}") for i in range(20_000)]
    others = Selector(SelectorKind.ANONYMOUS_ID, AWKWARD), Selector(SelectorKind.SESSION_ID, "s")
    assert found(tables, EVENTS, *visitors, *others) == [(1, T + 1), (2, T + 2)]
    assert found(tables, ERRORS, *visitors, *others) == [(4, T + 4)]


def test_values_of_several_types_of_one_property_are_found(chdb_store: FreshStore) -> None:
    insert_examples(chdb_store)
    one, text = (Selector(SelectorKind.PROPERTY, value, "n") for value in (1, "1"))
    assert found(chdb_store, EVENTS, one, text) == [(1, T + 1), (2, T + 2)]
    email = Selector(SelectorKind.PROPERTY, "A@b", "email")
    assert found(chdb_store, EVENTS, one, email) == [(1, T + 1), (2, T + 2)]
    assert found(chdb_store, EVENTS, text, Selector(SelectorKind.PROPERTY, True, "n")) == [
        (2, T + 2)
    ]


def test_the_row_of_an_event_id_is_found_in_its_table_and_website(tables: Tables) -> None:
    sent, reported = (
        blake2b(f"{kind}\0web_1\0ä-1".encode(), digest_size=16).digest()[:8]
        for kind in ("events", "errors")
    )
    tables.insert(EVENTS, [event(1, event_key=sent), event(2), event(3, website_id="web_2")])
    tables.insert(ERRORS, [event(4, event_key=reported)])
    selector = Selector(SelectorKind.EVENT_ID, "ä-1")

    assert found(tables, EVENTS, selector) == [(1, T + 1)]
    assert found(tables, ERRORS, selector) == [(4, T + 4)]
    assert found(tables, PERFORMANCE, selector) == []
    assert found(tables, EVENTS, Selector(SelectorKind.EVENT_ID, "ä-2")) == []


def test_a_table_without_the_column_has_no_rows_of_a_selector() -> None:
    email = Selector(SelectorKind.PROPERTY, "a@b", "email")
    assert find_rows(ERRORS, "web_1", [email], CHDB_DIALECT) is None
    assert compared_column(PERFORMANCE, WHOLE_WEBSITE) is None


def test_rows_are_found_and_deleted_by_id_and_others_stay(tables: Tables) -> None:
    insert_examples(tables)
    selector = Selector(SelectorKind.ANONYMOUS_ID, AWKWARD)
    assert found(tables, EVENTS, selector) == [(1, T + 1)]
    assert found(tables, ERRORS, selector) == [(4, T + 4)]
    rows = RowsToErase("events", 1, ((1).to_bytes(16),), T + 1, T + 1)
    delete(tables, EVENTS, list(deletions("web_1", rows)))
    assert sorted(tables.rows("SELECT website_id, anonymous_id FROM events")) == [
        ["web_1", "bob"],
        ["web_2", AWKWARD],
    ]
    finder = finder_of(tables)
    assert finder.replaced_parts()
    assert not finder.detached_parts()
    finder.close()


def test_a_whole_website_is_deleted_and_no_other(chdb_store: FreshStore) -> None:
    insert_examples(chdb_store)
    finder = finder_of(chdb_store)
    assert finder.select(count_rows(EVENTS, "web_1")) == [[2]]
    finder.close()
    delete(chdb_store, EVENTS, list(deletions("web_1", RowsToErase("events", 2))))
    assert chdb_store.rows("SELECT website_id FROM events") == [["web_2"]]


def test_many_ids_make_several_mutations_of_a_bounded_length(chdb_store: FreshStore) -> None:
    ids = tuple(number.to_bytes(16) for number in range(10_001))
    conditions = list(deletions("web_1", RowsToErase("events", len(ids), ids, T, T + 10_001)))
    assert len(conditions) == 3
    chdb_store.insert(EVENTS, [event(number) for number in (0, 7_000, 10_000, 10_001)])
    delete(chdb_store, EVENTS, conditions)
    assert chdb_store.rows("SELECT hex(id) FROM events") == [[(10_001).to_bytes(16).hex().upper()]]


def test_a_store_finds_the_value_of_a_subject(tables: Tables) -> None:
    insert_examples(tables)
    selector = Selector(SelectorKind.ANONYMOUS_ID, AWKWARD)
    column = compared_column(EVENTS, selector)
    assert column is not None
    prefixes = hash_prefixes(KEY, "web_1", selector.kind)
    digests = [subject_of(KEY, "web_1", selector).digest, "00" * 32]
    finder = finder_of(tables)
    assert finder.select(find_values(EVENTS, "web_1", column, prefixes, digests)) == [[AWKWARD]]
    finder.close()


def test_mutations_name_neither_values_nor_websites_as_text() -> None:
    rows = RowsToErase("events", 1, (b"\xff" * 16,), T, T)
    (condition,) = deletions("web_'1", rows)
    assert condition == (
        "website_id = unhex('7765625f2731') "
        f"AND time >= fromUnixTimestamp64Milli({T}, 'UTC') "
        f"AND time <= fromUnixTimestamp64Milli({T}, 'UTC') "
        f"AND hex(id) IN ('{'FF' * 16}')"
    )


def test_rows_that_are_copied_into_a_store_are_erased_again(tables: Tables, tmp_path: Path) -> None:
    requested_ms = T + 5
    before, after = (at.to_bytes(6, "big") + bytes(9) for at in (T, requested_ms + 1))
    rows = [
        {**event(1, anonymous_id="ann"), "id": before + b"\1"},
        {**event(2, anonymous_id="bob"), "id": before + b"\2"},
        {**event(3, anonymous_id="ann"), "id": after + b"\3"},
        {**event(4, properties=b'{"a":{"n":1}}'), "id": before + b"\4"},
        {**event(DAY_MS, properties=b'{"a.n":1}'), "id": before + b"\5"},
        {**event(5, properties=b'{"a.n":"1"}', anonymous_id="eve"), "id": before + b"\6"},
        {**event(6, properties=b'{"n":5}'), "id": before + b"\7"},
        {**event(7, properties=b'{"m":5.0}'), "id": before + b"\10"},
    ]
    tables.insert(EVENTS, rows)
    erasures = FileErasures(tmp_path)
    ann = Selector(SelectorKind.ANONYMOUS_ID, "ann")
    numbers = [
        Selector(SelectorKind.PROPERTY, value, key)
        for value, key in ((1, "a.n"), (5.0, "n"), (5, "m"))
    ]
    for selector in (ann, *numbers):
        erasures.put(
            Erasure(
                id=f"era_{selector.key}",
                website_id=WebsiteId("web_1"),
                kind=selector.kind,
                subjects=(subject_of(erasures.key(), "web_1", selector),),
                by="cli ann",
                requested_ms=requested_ms,
                done_ms=requested_ms,
            )
        )
    finder, deleter = finder_of(tables), deleter_of(tables)
    again = Reapplication(
        erasures, finder=finder, deleter=deleter, dialect=tables.dialect, clock=SystemClock()
    )
    assert (again.run(), again.run()) == (5, 0)
    assert sorted(tables.rows("SELECT anonymous_id FROM events")) == [["ann"], ["bob"], ["eve"]]
    assert [one.is_done for one in erasures.all()] == [False] * 4
    finder.close()
    deleter.close()
