"""The benchmark's data sets: rows fit the tables and do not depend on how they are generated."""

from collections.abc import Iterator

import pytest

from bench.baselines.chdb import BareChdb
from bench.dataset.columns import WEBSITES, Slice, select_rows
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, STORED_TABLES, Table
from testing.chdb import FreshStore

SITES = tuple(f"web_{number}" for number in range(WEBSITES))
ALL_SESSIONS = 10_000


@pytest.fixture
def source(chdb_engine: ChdbInstance, chdb_store: FreshStore) -> Iterator[BareChdb]:
    engine = BareChdb(chdb_engine.directory, chdb_store.database)
    yield engine
    engine.close()


def rows_of(table: Table, first: int, sessions: int, *, seed: int = 1) -> str:
    return select_rows(table, Slice(first, sessions, ALL_SESSIONS), SITES, seed=seed)


def digest(source: BareChdb, table: Table, first: int, sessions: int, *, seed: int = 1) -> int:
    rows = rows_of(table, first, sessions, seed=seed)
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
