"""The contract of the stores with the loader and the queries; some tests apply to chDB only."""

import contextlib
import os
import re
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.ddl import DATABASE, MIGRATIONS, Migration
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.statements import AlterTable
from headrace.base.errors import OperatorError, QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.base.logs import get_logger
from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, STORED_TABLES, Kind, Table
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.store import BatchRejected, QueryLimits
from testing.chdb import ENDLESS, FreshStore, Row, arrow_stream
from testing.tables import Tables, writer_of
from tests.oracle.fingerprint import fingerprint

LARGE = "SELECT uniqExact(number) FROM numbers(50000000)"
RUNNING = (
    "SELECT count() FROM system.processes WHERE startsWith(Settings['log_comment'], {id:String})"
)

_BINARY = {"properties"}
_HEXADECIMAL = {"id", "event_key"}

EVENT: dict[str, Any] = {
    "id": b"0123456789abcdef",
    "website_id": "web_1",
    "event_name": "purchase\x00 é😀",
    "path": "/a'b\\c\n",
    "time": 1_700_000_000_123,
    "received_at": -1,
    "is_bot": True,
    "value": 0.1,
    "properties": b'{"a":{"b":[1,"x",null]}}',
    "event_key": b"\x00\xff\x80key\x00\x00",
}


@pytest.mark.parametrize("table", STORED_TABLES, ids=lambda table: table.name)
def test_a_row_is_read_back_with_every_column(table: Table, tables: Tables) -> None:
    row = {name: EVENT[name] for name in _columns(table) if name in EVENT}
    tables.insert(table, [row])
    columns = ", ".join(_as_written(c.name, c.kind) for c in STORAGE_TABLES[table.name].columns)
    (found,) = tables.rows(f"SELECT {columns} FROM {table.name}")
    assert dict(zip(_columns(table), found, strict=True)) == {
        **{column.name: _missing(column.kind) for column in STORAGE_TABLES[table.name].columns},
        **{name: _plain(name, value) for name, value in row.items()},
    }


def _columns(table: Table) -> list[str]:
    return [column.name for column in STORAGE_TABLES[table.name].columns]


def _as_written(name: str, kind: Kind) -> str:
    match kind:
        case Kind.DATETIME:
            return f"toUnixTimestamp64Milli(`{name}`)"
        case Kind.IDENTIFIER | Kind.DIGEST:
            return f"hex(`{name}`)"
        case _:
            return f"`{name}`"


def _plain(name: str, value: Any) -> Any:
    if name in _HEXADECIMAL:
        return value.hex().upper()
    return value.decode() if name in _BINARY else value


def _missing(kind: Kind) -> Any:
    missing = {Kind.NUMBER: None, Kind.BOOLEAN: False, Kind.DATETIME: 1_700_000_000_000}
    return missing.get(kind, "")


def test_a_batch_is_visible_once_its_insert_returns(tables: Tables) -> None:
    for number in range(1, 21):
        tables.insert(EVENTS, [{**EVENT, "id": number.to_bytes(16)}])
        assert tables.rows("SELECT count() FROM events") == [[number]]


def test_a_repeated_token_is_not_stored_again(tables: Tables) -> None:
    for number, token in enumerate(("log-1:0:100", "it's \\ another")):
        row = {**EVENT, "id": number.to_bytes(16)}
        for _ in range(2):
            tables.insert(EVENTS, [row, row], token=token)
    assert tables.rows("SELECT count() FROM events") == [[4]]


def test_the_same_token_in_two_tables_is_two_batches(tables: Tables) -> None:
    tables.insert(ERRORS, [{"message": "m"}], token="same")
    tables.insert(PERFORMANCE, [{"metric_value": 1.0}], token="same")
    sql = "SELECT (SELECT count() FROM errors), (SELECT count() FROM performance)"
    assert tables.rows(sql) == [[1, 1]]


def test_a_batch_over_twenty_years_is_one_part(chdb_store: FreshStore) -> None:
    year_ms = 31_556_952_000
    chdb_store.insert(EVENTS, [{**EVENT, "time": year * year_ms} for year in range(31, 51)])
    sql = (
        "SELECT count(), sum(rows) FROM system.parts "
        "WHERE active AND table = 'events' AND database = {d:String}"
    )
    assert chdb_store.rows(sql, {"d": chdb_store.database}) == [[1, 20]]


def test_a_stored_batch_is_on_disk_and_so_is_its_token(chdb_store: FreshStore) -> None:
    settings = chdb_store.rows(
        "SELECT extractAll(create_table_query, '(\\\\w+) = 1,'), position(create_table_query, "
        "'non_replicated_deduplication_window = 1000') > 0 "
        "FROM system.tables WHERE name = 'events' AND database = {d:String}",
        {"d": chdb_store.database},
    )
    assert settings == [
        [
            [
                "fsync_after_insert",
                "fsync_part_directory",
                "min_rows_to_fsync_after_merge",
                "min_compressed_bytes_to_fsync_after_merge",
            ],
            1,
        ]
    ]


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (arrow_stream(EVENTS, [EVENT] * 100)[:5000], "Cannot read all data|not an Arrow"),
        (arrow_stream(PERFORMANCE, [{"metric_value": 1.0}]), "is not present in the Arrow"),
        (b"", "not an Arrow stream"),
        (b"no Arrow stream", "not an Arrow stream"),
    ],
    ids=["cut off", "columns missing", "empty", "something else"],
)
def test_a_batch_that_cannot_be_stored_is_rejected_and_nothing_of_it_is_kept(
    stream: bytes, words: str, tables: Tables
) -> None:
    with pytest.raises(BatchRejected, match=words):
        tables.writer.insert(EVENTS, stream, token="t")
    tables.insert(EVENTS, [EVENT], token="t")
    assert tables.rows("SELECT count() FROM events") == [[1]]


@pytest.mark.slow
def test_a_batch_that_does_not_fit_on_disk_is_not_reported_as_stored(
    chdb_store: FreshStore,
) -> None:
    alter = f"ALTER TABLE {chdb_store.database}.events MODIFY SETTING"
    free_bytes = "min_free_disk_bytes_to_perform_insert"
    chdb_store.engine.execute(f"{alter} {free_bytes} = {10**18}")
    for token in ("one", "two"):
        with pytest.raises(StoreUnavailable):
            chdb_store.insert(EVENTS, [EVENT], token=token)
    chdb_store.engine.execute(f"{alter} {free_bytes} = 0")
    chdb_store.insert(EVENTS, [EVENT], token="one")
    assert chdb_store.rows("SELECT count() FROM events") == [[1]]


def test_a_known_token_without_rows_does_not_drop_the_batch(tables: Tables) -> None:
    tables.insert(EVENTS, [EVENT], token="t")
    other = {**EVENT, "id": b"fedcba9876543210"}
    for _ in range(2):
        tables.insert(EVENTS, [other, other], token="t")
    assert tables.rows("SELECT count() FROM events") == [[3]]


def test_existing_rows_are_not_stored_again_with_another_token(
    tables: Tables,
) -> None:
    for token in ("one", "two"):
        tables.insert(EVENTS, [EVENT, EVENT], token=token)
    assert tables.rows("SELECT count() FROM events") == [[2]]


class FailingSession(ChdbSession):
    """A session whose first inserts run `first_insert`."""

    def __init__(self, inner: ChdbSession, first_insert: "FirstInsert", *, inserts: int) -> None:
        self._inner = inner
        self._first_insert = first_insert
        self._left = inserts

    def execute(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[list[Any]]:
        return self._inner.execute(statement, parameters)

    def insert(self, statement: str, arrow_stream: bytes) -> None:
        if self._left:
            self._left -= 1
            self._first_insert(self._inner, statement, arrow_stream)
        else:
            self._inner.insert(statement, arrow_stream)

    def close(self) -> None:
        self._inner.close()


FirstInsert = Callable[[ChdbSession, str, bytes], None]


class FailingChdb(ChdbInstance):
    """A chDB instance whose sessions fail at their first inserts."""

    def __init__(self, inner: ChdbInstance, first_insert: FirstInsert, *, inserts: int = 1) -> None:
        super().__init__(inner.directory, log=get_logger())
        self._inner = inner
        self._first_insert = first_insert
        self._inserts = inserts

    def execute(self, statement: str) -> list[list[Any]]:
        return self._inner.execute(statement)

    def session(self, database: str = DATABASE, *, writable: bool = False) -> ChdbSession:
        session = self._inner.session(database, writable=writable)
        return FailingSession(session, self._first_insert, inserts=self._inserts)


PATH_OF_NEWEST = (
    "SELECT path FROM system.parts WHERE active AND table = 'events' "
    "AND database = currentDatabase() ORDER BY min_block_number DESC LIMIT 1"
)


def store_nothing(session: ChdbSession, statement: str, arrow_stream: bytes) -> None:
    del session, statement, arrow_stream


def store_token_only(session: ChdbSession, statement: str, arrow_stream: bytes) -> None:
    session.insert(statement, arrow_stream)
    ((path,),) = session.execute(PATH_OF_NEWEST)
    session.execute(f"ALTER TABLE events DROP PART '{Path(path).name}'")


OTHER_ROW = arrow_stream(EVENTS, [EVENT])


def store_token_with_another_row(
    session: ChdbSession, statement: str, _arrow_stream: bytes
) -> None:
    session.insert(statement, OTHER_ROW)


def store_truncated_part(session: ChdbSession, statement: str, arrow_stream: bytes) -> None:
    session.insert(statement, arrow_stream)
    ((path,),) = session.execute(PATH_OF_NEWEST)
    os.truncate(Path(path, "data.bin"), Path(path, "data.bin").stat().st_size - 1)


def store_truncated_rollup(session: ChdbSession, statement: str, arrow_stream: bytes) -> None:
    session.insert(statement, arrow_stream)
    ((path,),) = session.execute(PATH_OF_NEWEST)
    os.truncate(Path(path, "visits.proj", "data.bin"), 0)


def merge_at_once(session: ChdbSession, statement: str, arrow_stream: bytes) -> None:
    session.insert(statement, arrow_stream)
    session.execute("OPTIMIZE TABLE events FINAL")


@pytest.mark.parametrize(
    "first_insert",
    [
        store_nothing,
        store_token_only,
        store_truncated_part,
        merge_at_once,
    ],
)
def test_retried_batch_is_stored_once_whatever_its_first_insert_did(
    first_insert: FirstInsert, chdb_store: FreshStore
) -> None:
    before = {**EVENT, "id": b"fedcba9876543210"}
    chdb_store.insert(EVENTS, [before])
    chdb = FailingChdb(chdb_store.engine, first_insert)
    writer = ChdbWriter(chdb, database=chdb_store.database)
    stream = arrow_stream(EVENTS, [{**EVENT, "id": n.to_bytes(16)} for n in range(100)])
    writer.insert(EVENTS, stream, token="new", first_attempt=True)
    writer.close()
    counted = "SELECT (SELECT count() FROM events), (SELECT sum(event_count) FROM visits)"
    assert chdb_store.rows(counted) == [[101, 101]]


@pytest.mark.parametrize(
    ("inserts", "failures"), [(1, 0), (2, 1), (5, 2)], ids=["one", "both", "those of retries"]
)
def test_retried_batch_is_stored_however_many_of_its_tokens_are_known_without_its_rows(
    inserts: int, failures: int, chdb_store: FreshStore
) -> None:
    chdb = FailingChdb(chdb_store.engine, store_token_with_another_row, inserts=inserts)
    writer = ChdbWriter(chdb, database=chdb_store.database)
    stream = arrow_stream(EVENTS, [{**EVENT, "website_id": "web_b"}])
    for _ in range(failures):
        with pytest.raises(StoreUnavailable, match="chDB did not keep a batch of events"):
            writer.insert(EVENTS, stream, token="new")
    writer.insert(EVENTS, stream, token="new")
    writer.close()
    counted = "SELECT count() FROM events WHERE website_id = 'web_b'"
    assert chdb_store.rows(counted) == [[1]]


def test_retried_batch_is_stored_also_where_each_retry_begins_with_a_stored_one(
    chdb_store: FreshStore,
) -> None:
    """Each retry of a load begins with the table that has its rows already."""
    stored = arrow_stream(PERFORMANCE, [{"id": b"fedcba9876543210"}])
    chdb = FailingChdb(chdb_store.engine, store_token_with_another_row, inserts=5)
    writer = ChdbWriter(chdb, database=chdb_store.database)
    chdb_store.insert(PERFORMANCE, [{"id": b"fedcba9876543210"}])
    stream = arrow_stream(EVENTS, [{**EVENT, "website_id": "web_b"}])
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="chDB did not keep a batch of events"):
            writer.insert(EVENTS, stream, token="new")
        writer.insert(PERFORMANCE, stored, token="stored")
    writer.insert(EVENTS, stream, token="new")
    writer.close()
    counted = "SELECT count() FROM events WHERE website_id = 'web_b'"
    assert chdb_store.rows(counted) == [[1]]


def test_batch_with_a_truncated_rollup_is_stored_once_after_the_rollup_is_rebuilt(
    chdb_store: FreshStore,
) -> None:
    chdb = FailingChdb(chdb_store.engine, store_truncated_rollup)
    writer = ChdbWriter(chdb, database=chdb_store.database)
    stream = arrow_stream(EVENTS, [{**EVENT, "id": n.to_bytes(16)} for n in range(100)])
    with pytest.raises(StoreUnavailable, match="CORRUPTED_DATA"):
        writer.insert(EVENTS, stream, token="new", first_attempt=True)
    assert writer.rollup.rebuild(threading.Event(), checks_bytes=True)
    writer.insert(EVENTS, stream, token="new", first_attempt=False)
    writer.close()
    counted = "SELECT (SELECT count() FROM events), (SELECT sum(event_count) FROM visits)"
    assert chdb_store.rows(counted) == [[100, 100]]


@pytest.mark.parametrize("kept", [0, -1], ids=["all lost", "last byte lost"])
def test_a_broken_part_is_detached_and_its_batch_stored_again(
    kept: int, chdb_store: FreshStore
) -> None:
    chdb_store.insert(EVENTS, [EVENT] * 100, token="t")
    path = (
        "SELECT path FROM system.parts WHERE active AND table = 'events' AND database = {d:String}"
    )
    ((part,),) = chdb_store.rows(path, {"d": chdb_store.database})
    data = Path(part, "data.bin")
    data.write_bytes(data.read_bytes()[:kept])
    chdb_store.insert(EVENTS, [EVENT] * 100, token="t")
    assert chdb_store.rows("SELECT count() FROM events") == [[100]]


def test_a_broken_merge_is_detached_after_a_full_disk(chdb_store: FreshStore) -> None:
    rows = [
        {**EVENT, "id": number.to_bytes(16), "website_id": f"web_{number // 2}"}
        for number in range(4)
    ]
    for row in rows[:2]:
        chdb_store.insert(EVENTS, [row])
    events = f"{chdb_store.database}.events"
    chdb_store.engine.execute(f"OPTIMIZE TABLE {events} FINAL")
    path = (
        "SELECT path FROM system.parts WHERE active AND table = 'events' AND database = {d:String}"
    )
    ((merged,),) = chdb_store.rows(path, {"d": chdb_store.database})
    Path(merged, "data.bin").write_bytes(b"")
    free_bytes = "min_free_disk_bytes_to_perform_insert"
    chdb_store.engine.execute(f"ALTER TABLE {events} MODIFY SETTING {free_bytes} = {10**18}")
    with pytest.raises(StoreUnavailable):
        chdb_store.insert(EVENTS, rows[2:], token="t")
    chdb_store.engine.execute(f"ALTER TABLE {events} MODIFY SETTING {free_bytes} = 0")
    chdb_store.insert(EVENTS, rows[2:], token="t")
    assert chdb_store.rows("SELECT count(), uniqExact(id) FROM events") == [[4, 4]]


def test_a_batch_without_rows_stores_nothing(tables: Tables) -> None:
    tables.insert(EVENTS, [], token="t")
    tables.insert(EVENTS, [EVENT], token="t")
    assert tables.rows("SELECT count() FROM events") == [[1]]


def test_a_missing_table_does_not_reject_the_batch(chdb_store: FreshStore) -> None:
    chdb_store.engine.execute(
        f"RENAME TABLE {chdb_store.database}.events TO {chdb_store.database}.x"
    )
    with pytest.raises(StoreUnavailable):
        chdb_store.insert(EVENTS, [EVENT], token="t")
    chdb_store.engine.execute(
        f"RENAME TABLE {chdb_store.database}.x TO {chdb_store.database}.events"
    )
    chdb_store.insert(EVENTS, [EVENT], token="t")
    assert chdb_store.rows("SELECT count() FROM events") == [[1]]


def test_a_store_error_contains_no_values(tables: Tables) -> None:
    with pytest.raises(ClickHouseError) as rejected:
        tables.rows("SELECT toInt32({p0:String})", {"p0": "secret"})
    assert str(rejected.value) == "ClickHouse rejected a statement: CANNOT_PARSE_TEXT (6)"
    logged = "".join(traceback.format_exception(rejected.value, chain=True))
    assert "Cannot parse" not in logged


def test_a_failing_writer_stores_nothing(chdb_store: FreshStore) -> None:
    writer = ChdbWriter(chdb_store.engine, database=chdb_store.database)
    writer.request_stop()
    with pytest.raises(StoreUnavailable):
        writer.insert(EVENTS, arrow_stream(EVENTS, [EVENT]), token="t")
    assert chdb_store.rows("SELECT count() FROM events") == [[0]]


def test_preparing_again_changes_nothing(tables: Tables) -> None:
    tables.insert(EVENTS, [EVENT])
    writer_of(tables).prepare()
    assert tables.rows("SELECT count() FROM events") == [[1]]
    versions = [[migration.version] for migration in MIGRATIONS]
    found = tables.rows("SELECT DISTINCT version FROM schema_version ORDER BY version")
    assert found == versions


def test_a_new_store_is_what_all_migrations_lead_to(chdb_store: FreshStore) -> None:
    chdb, migrated = chdb_store.engine, f"{chdb_store.database}_migrated"
    every = tuple(structs.replace(one, is_in_new_tables=False) for one in MIGRATIONS)
    layout = (
        "SELECT name, replaceAll(create_table_query, '{0}', 'it') FROM system.tables "
        "WHERE database = '{0}' ORDER BY name"
    )
    writer = ChdbWriter(chdb, database=migrated, migrations=every)
    try:
        writer.prepare()
        found = chdb.execute(layout.format(chdb_store.database))
        assert found == chdb.execute(layout.format(migrated))
        assert [name for name, _ in found] == sorted([*STORAGE_TABLES, "schema_version", "visits"])
    finally:
        writer.close()
        chdb.execute(f"DROP DATABASE {migrated} SYNC")


def test_a_migration_runs_once(tables: Tables) -> None:
    later = Migration(
        MIGRATIONS[-1].version + 1,
        (AlterTable(name="events", change="ADD COLUMN `extra` UInt8"),),
    )
    for _ in range(2):
        writer_of(tables, (*MIGRATIONS, later)).prepare()
    assert tables.rows("SELECT max(version) FROM schema_version") == [[later.version]]
    assert tables.rows("SELECT extra FROM events") == []


@contextlib.contextmanager
def migrated_store(
    chdb_store: FreshStore, version: int, table: Table, rows: Sequence[Row]
) -> Generator[tuple[ChdbWriter, str]]:
    """A store with rows that was written in an older layout: its writer and its database."""
    chdb, database = chdb_store.engine, f"{chdb_store.database}_older"
    older = ChdbWriter(chdb, database=database, migrations=MIGRATIONS[:version])
    newer = ChdbWriter(chdb, database=database)
    try:
        older.prepare()
        older.insert(table, arrow_stream(table, rows), token="t")
        older.close()
        newer.prepare()
        yield newer, database
    finally:
        newer.close()
        chdb.execute(f"DROP DATABASE {database} SYNC")


def stored_values(chdb: ChdbInstance, database: str, column: str) -> int:
    """Return in how many rows a generated column is stored."""
    ((rows,),) = chdb.execute(
        f"SELECT sum(rows) FROM system.parts_columns WHERE active AND column = '{column}' "
        f"AND database = '{database}'"
    )
    return int(rows)


def test_errors_of_an_older_store_have_fingerprints(chdb_store: FreshStore) -> None:
    rows = [{"error_type": "TypeError", "message": f"order {number} is gone"} for number in (1, 2)]
    with migrated_store(chdb_store, 5, ERRORS, rows) as (_, older):
        found = chdb_store.engine.execute(
            f"SELECT fingerprint, count() FROM {older}.errors GROUP BY ALL"
        )
    assert found == [[fingerprint("TypeError", "order ? is gone", ""), 2]]


def test_visitors_of_an_older_store_are_counted_with_those_stored_since(
    chdb_store: FreshStore,
) -> None:
    chdb = chdb_store.engine
    ids = ["anon_1", "", "anon_2", "anon_1"]
    rows = [{"anonymous_id": name, "session_id": f"{name}!", "path": "/"} for name in ids]
    with migrated_store(chdb_store, 6, EVENTS, rows) as (writer, older):
        counts = (
            "SELECT count(), uniqExact(visitor_key), countIf(visitor_key = 0), "
            f"uniqExact(session_key), countIf(session_key = 0) FROM {older}.events"
        )
        writer.insert(EVENTS, arrow_stream(EVENTS, [{"anonymous_id": "anon_2"}]), token="u")
        assert chdb.execute(counts) == [[5, 3, 1, 4, 1]]
        _until_mutated(chdb, older)
        assert chdb.execute(counts) == [[5, 3, 1, 4, 1]]
        assert stored_values(chdb, older, "visitor_key") == 5
        assert writer.rollup.check() == 0


def test_properties_of_an_older_store_are_tested_with_those_stored_since(
    chdb_store: FreshStore,
) -> None:
    chdb = chdb_store.engine
    simple = ["{}", '{"a":1,"b":"{}"}', '{"a":[1,2]}', '{"a":"x:{ y"}']
    nested = ['{"a":{"b":1}}', '{"a":[{"b":1}]}', '{"a":[1,{"b":1}]}']
    others = [*nested, r'{"a":"\n"}', '{"a":"looks nested:{"}']
    rows = [{"properties": text.encode()} for text in (*simple, *others)]
    expected = [[0, sorted(others)], [1, sorted(simple)]]
    with migrated_store(chdb_store, 8, EVENTS, rows[::2]) as (writer, older):
        tested = (
            "SELECT has_simple_properties, arraySort(groupArray(properties)) "
            f"FROM {older}.events GROUP BY ALL ORDER BY ALL"
        )
        writer.insert(EVENTS, arrow_stream(EVENTS, rows[1::2]), token="u")
        assert chdb.execute(tested) == expected
        _until_mutated(chdb, older)
        assert chdb.execute(tested) == expected
        assert stored_values(chdb, older, "has_simple_properties") == len(rows)
        assert writer.rollup.check() == 0


def _until_mutated(chdb: ChdbInstance, database: str) -> None:
    waiting = f"SELECT count() FROM system.mutations WHERE NOT is_done AND database = '{database}'"
    while chdb.execute(waiting) != [[0]]:
        time.sleep(0.02)


def test_an_older_store_gets_the_settings_of_a_new_one(chdb_store: FreshStore) -> None:
    chdb, older = chdb_store.engine, f"{chdb_store.database}_older"
    alter = f"ALTER TABLE {older}.{{}} RESET SETTING merge_selector_base"
    writer = ChdbWriter(chdb, database=older, migrations=MIGRATIONS[:2])
    try:
        writer.prepare()
        for name in STORAGE_TABLES:
            chdb.execute(alter.format(name))
        ChdbWriter(chdb, database=older).prepare()
        settings = (
            "SELECT name, arraySort(splitByString(', ', extract(engine_full, 'SETTINGS (.*)'))) "
            "FROM system.tables WHERE name IN ('events', 'errors', 'performance') "
            "AND database = '{}' ORDER BY name"
        )
        found = chdb.execute(settings.format(older))
        assert found == chdb.execute(settings.format(chdb_store.database))
        assert all("merge_selector_base = 8" in listed for _, listed in found)
    finally:
        writer.close()
        chdb.execute(f"DROP DATABASE {older} SYNC")


def test_a_store_of_a_newer_version_is_rejected(tables: Tables) -> None:
    newer = Migration(MIGRATIONS[-1].version + 1, ())
    writer_of(tables, (*MIGRATIONS, newer)).prepare()
    newest = MIGRATIONS[-1].version
    words = f"newer Headrace (layout {newest + 1}, this version knows {newest})"
    with pytest.raises(OperatorError, match=re.escape(words)):
        writer_of(tables).prepare()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO events (id) VALUES ('')",
        "CREATE TABLE other (a UInt8) ENGINE = Memory",
        "DROP TABLE events",
        "ALTER TABLE events DELETE WHERE 1",
        "SET readonly = 0",
    ],
)
def test_a_reading_session_is_read_only(statement: str, chdb_store: FreshStore) -> None:
    session = chdb_store.engine.session(chdb_store.database)
    with pytest.raises(ClickHouseError, match="READONLY"):
        session.execute(statement)
    session.close()


def test_numbers_are_json_numbers_and_non_finite_ones_null(tables: Tables) -> None:
    sql = "SELECT toUInt64(18446744073709551615), 1 / 3, nan, -inf, toDecimal64(1.5, 3), true, NULL"
    assert tables.rows(sql) == [[2**64 - 1, 1 / 3, None, None, 1.5, True, None]]


def test_invalid_utf_8_does_not_break_a_result(tables: Tables) -> None:
    assert tables.rows("SELECT unhex('61FF62')") == [["a\ufffdb"]]


def test_a_select_past_its_deadline_is_cancelled(tables: Tables) -> None:
    with pytest.raises(QueryTimedOut):
        tables.rows(ENDLESS, limits=QueryLimits(timeout_s=0.2, max_memory_bytes=10**9))
    assert tables.rows("SELECT 1") == [[1]]


def test_a_select_over_its_memory_limit_is_cancelled(tables: Tables) -> None:
    with pytest.raises(QueryTooLarge):
        tables.rows(LARGE, limits=QueryLimits(timeout_s=15, max_memory_bytes=50_000_000))
    assert tables.rows("SELECT 1") == [[1]]


def test_a_result_of_too_many_bytes_is_too_large(tables: Tables) -> None:
    with pytest.raises(QueryTooLarge):
        tables.rows("SELECT randomPrintableASCII(20000) FROM numbers(10000)")
