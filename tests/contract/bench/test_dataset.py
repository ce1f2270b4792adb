"""The benchmark's data sets: rows fit the tables and do not depend on how they are generated."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from bench.baselines.chdb import BareChdb
from bench.dataset.columns import EVENTS_PER_SESSION, SHARES, WEBSITES, Slice, select_rows
from bench.dataset.generate import insert_slices
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, STORED_TABLES, Table
from testing.chdb import FreshStore

pytestmark = pytest.mark.slow

SITES = tuple(f"web_{number}" for number in range(WEBSITES))
ALL_SESSIONS = 10_000


@pytest.fixture
def source(chdb_engine: ChdbInstance, chdb_store: FreshStore) -> Iterator[BareChdb]:
    engine = BareChdb(chdb_engine.directory, chdb_store.database)
    yield engine
    engine.close()


def rows_of(table: Table, first: int, sessions: int, *, seed: int = 1, website: int = 0) -> str:
    return select_rows(table, Slice(first, sessions, ALL_SESSIONS, website), SITES, seed=seed)


def digest(
    source: BareChdb, table: Table, first: int, sessions: int, *, seed: int = 1, website: int = 0
) -> int:
    rows = rows_of(table, first, sessions, seed=seed, website=website)
    ((found,),) = source.query(f"SELECT groupBitXor(cityHash64(toString(tuple(*)))) FROM ({rows})")
    return int(found)


@pytest.mark.parametrize(
    ("table", "count"),
    [
        pytest.param(EVENTS, 1000, id="five events a visit"),
        pytest.param(PERFORMANCE, 100, id="five vitals in every tenth visit"),
        pytest.param(ERRORS, 20, id="an error in every tenth visit"),
    ],
)
def test_rows_are_inserted_through_the_writer_with_unique_ids(
    source: BareChdb, chdb_store: FreshStore, table: Table, count: int
) -> None:
    stream = source.query_arrow(rows_of(table, 0, 200))
    chdb_store.writer.insert(table, stream, token="one")
    counts = f"SELECT count(), uniqExact(id) FROM {table.name}"
    assert chdb_store.rows(counts) == [[count, count]]


@pytest.mark.parametrize("table", STORED_TABLES, ids=lambda table: table.name)
def test_chunks_add_up_to_the_full_dataset(source: BareChdb, table: Table) -> None:
    chunks = digest(source, table, 300, 100) ^ digest(source, table, 400, 200)
    assert digest(source, table, 300, 300) == chunks


@pytest.mark.parametrize("table", STORED_TABLES, ids=lambda table: table.name)
def test_slices_of_each_website_add_up_to_the_full_dataset(source: BareChdb, table: Table) -> None:
    joined = 0
    for number in range(1, WEBSITES + 1):
        joined ^= digest(source, table, 300, 100, website=number)
    assert joined == digest(source, table, 300, 100)


def test_large_data_set_is_inserted_website_by_website_in_parts_of_one_insert() -> None:
    slices = list(insert_slices(events=100_000_000, all_events=200_000_000))
    sessions = Counter[int]()
    for piece, following in pairwise([*slices, Slice(0, 0, 0)]):
        assert piece.first == sessions[piece.website]
        assert following.website == piece.website or following.first == 0
        sessions[piece.website] += piece.sessions
        assert 100_000 < piece.sessions * EVENTS_PER_SESSION * SHARES[piece.website - 1] < 1_000_000
    assert sessions == dict.fromkeys(range(1, WEBSITES + 1), 20_000_000)


def test_another_seed_generates_other_rows(source: BareChdb) -> None:
    assert digest(source, EVENTS, 0, 100) != digest(source, EVENTS, 0, 100, seed=2)


def test_sessions_last_minutes_and_visitors_return(source: BareChdb) -> None:
    ((shortest_s, longest_s, sessions_per_profile),) = source.query(
        "SELECT min(s), max(s), intDiv(count(), uniqExact(anonymous_id)) FROM"
        " (SELECT anonymous_id, toFloat64(max(time) - min(time)) AS s"
        f" FROM ({rows_of(EVENTS, 0, ALL_SESSIONS)}) GROUP BY session_id, anonymous_id)"
    )
    assert shortest_s == 0
    assert 30 * 60 < longest_s < 60 * 60
    assert sessions_per_profile in {7, 8, 9}
