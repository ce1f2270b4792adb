"""The contract of deleting stored rows for good, over each store."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.adapters.store.chdb import row_deletion
from headrace.adapters.store.chdb.row_deletion import ChdbRowDeleter
from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store.clickhouse.row_deletion import ClickHouseRowDeleter
from headrace.adapters.store.dialect.row_deletion import select_mutations
from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import ERRORS, EVENTS, Table
from headrace.ports.rows.deletion import DeletionState, RowDeleter
from testing.chdb import FreshStore, cut_off_newest_mutation
from testing.servers.clickhouse import (
    ClickHouseServers,
    ClickHouseTables,
    address_of,
    new_database,
)
from testing.servers.ports import free_port
from testing.tables import Tables

DAY_MS = 86_400_000
T = 1_700_000_000_000
DEADLINE_S = 120.0
IDLE = DeletionState(parts_left=0, is_failing=False, is_waiting=False, replaced_parts=0)


def deleter_of(tables: Tables) -> RowDeleter:
    if isinstance(tables, FreshStore):
        return ChdbRowDeleter(tables.engine, database=tables.database)
    assert isinstance(tables, ClickHouseTables)
    return ClickHouseRowDeleter(tables.address)


def wait_until(deleter: RowDeleter, table: Table, is_met: Callable[[DeletionState], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_met(state := deleter.state(table)):
        assert time.monotonic() < deadline, state
        time.sleep(0.05)


def execute(tables: Tables, statement: str) -> None:
    if isinstance(tables, FreshStore):
        tables.engine.execute(statement.format(events=f"`{tables.database}`.events"))
    else:
        assert isinstance(tables, ClickHouseTables)
        tables.execute(statement.format(events="`{database}`.events"))


def delete(tables: Tables, table: Table, condition: str) -> None:
    deleter = deleter_of(tables)
    try:
        deleter.begin(table, condition)
        wait_until(deleter, table, lambda state: not state.parts_left)
    finally:
        deleter.close()


def event(number: int, **columns: Any) -> dict[str, Any]:
    return {
        "id": number.to_bytes(16),
        "website_id": f"web_{number % 2}",
        "event_name": "screen_view",
        "session_id": f"s{number}",
        "anonymous_id": f"a{number}",
        "time": T + number * DAY_MS,
        **columns,
    }


def test_rows_that_match_are_gone_and_all_others_stay(tables: Tables) -> None:
    tables.insert(EVENTS, [event(number) for number in range(10)])
    tables.insert(ERRORS, [{"message": "m", "website_id": "web_0"}])
    bound = f"fromUnixTimestamp64Milli({T + 5 * DAY_MS}, 'UTC')"
    delete(tables, EVENTS, f"website_id = 'web_0' AND time < {bound}")
    kept = tables.rows("SELECT session_id FROM events ORDER BY session_id")
    assert kept == [["s1"], ["s3"], ["s5"], ["s6"], ["s7"], ["s8"], ["s9"]]
    assert tables.rows("SELECT count() FROM errors") == [[1]]


def test_the_rollup_has_the_rows_that_remain_and_no_others(tables: Tables) -> None:
    tables.insert(EVENTS, [event(number) for number in range(10)])
    delete(tables, EVENTS, "website_id = 'web_1'")
    rollup = "SELECT session_id, event_count FROM visits ORDER BY session_id"
    if tables.dialect.is_distributed:
        assert tables.rows(rollup) == [[f"s{number}", 1] for number in range(0, 10, 2)]
    else:
        projection = "mergeTreeProjection('', 'events', 'visits')"
        assert tables.rows(f"SELECT session_id FROM {projection} ORDER BY session_id") == [
            [f"s{number}"] for number in range(0, 10, 2)
        ]


def test_a_row_stored_after_the_deletion_began_stays(tables: Tables) -> None:
    tables.insert(EVENTS, [event(2)])
    deleter = deleter_of(tables)
    deleter.begin(EVENTS, "website_id = 'web_0'")
    tables.insert(EVENTS, [event(4)])
    wait_until(deleter, EVENTS, lambda state: not state.parts_left)
    deleter.close()
    assert tables.rows("SELECT session_id FROM events") == [["s4"]]


def test_a_deletion_that_was_begun_is_never_reported_as_complete_too_early(
    tables: Tables,
) -> None:
    for number in range(4):
        tables.insert(EVENTS, [event(number)])
    deleter = deleter_of(tables)
    deleter.begin(EVENTS, "true")
    wait_until(deleter, EVENTS, lambda state: not state.parts_left)
    deleter.close()
    assert tables.rows("SELECT count() FROM events") == [[0]]


@pytest.mark.slow
def test_parts_that_were_rewritten_are_reported_until_their_files_are_gone(
    chdb_store: FreshStore,
) -> None:
    chdb_store.insert(EVENTS, [event(1), event(2)])
    deleter = deleter_of(chdb_store)
    assert deleter.state(EVENTS) == IDLE
    deleter.begin(EVENTS, "website_id = 'web_0'")
    wait_until(deleter, EVENTS, lambda state: not state.parts_left)
    assert deleter.state(EVENTS) == replace(IDLE, replaced_parts=1)
    chdb_store.engine.execute(
        f"ALTER TABLE `{chdb_store.database}`.events MODIFY SETTING old_parts_lifetime = 1"
    )
    wait_until(deleter, EVENTS, lambda state: not state.replaced_parts)
    deleter.close()


def test_a_deletion_that_the_store_does_not_go_on_with_is_waiting(tables: Tables) -> None:
    if isinstance(tables, ClickHouseTables) and tables.address.is_replicated:
        pytest.skip("replicas give a reason where a disk is full, and none for stopped merges")
    tables.insert(EVENTS, [event(1), event(2)])
    deleter = deleter_of(tables)
    execute(tables, "SYSTEM STOP MERGES {events}")
    try:
        deleter.begin(EVENTS, "website_id = 'web_0'")
        wait_until(deleter, EVENTS, lambda state: state.is_waiting)
    finally:
        execute(tables, "SYSTEM START MERGES {events}")
    wait_until(deleter, EVENTS, lambda state: not state.parts_left)
    assert not deleter.state(EVENTS).is_waiting
    deleter.close()


def test_a_deletion_behind_merges_waits_its_turn(
    chdb_store: FreshStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_a_merge(mutations: str, *, merges: str) -> str:
        assert merges == "system.merges"
        return select_mutations(mutations, merges="(SELECT 1)")

    monkeypatch.setattr(row_deletion, "select_mutations", with_a_merge)
    chdb_store.insert(EVENTS, [event(1), event(2)])
    deleter = deleter_of(chdb_store)
    execute(chdb_store, "SYSTEM STOP MERGES {events}")
    deleter.begin(EVENTS, "website_id = 'web_0'")
    behind_a_merge = deleter.state(EVENTS)
    monkeypatch.undo()
    wait_until(deleter, EVENTS, lambda state: state.is_waiting)
    execute(chdb_store, "SYSTEM START MERGES {events}")
    assert (behind_a_merge.parts_left, behind_a_merge.is_waiting) == (1, False)
    deleter.close()


def test_a_deletion_that_a_full_disk_cut_off_is_lost_and_can_be_begun_again(
    chdb_store: FreshStore,
) -> None:
    chdb_store.insert(EVENTS, [event(number) for number in range(4)])
    table = f"`{chdb_store.database}`.events"
    chdb_store.engine.execute(f"SYSTEM STOP MERGES {table}")
    deleter = deleter_of(chdb_store)
    before = deleter.lost_deletions()
    deleter.begin(EVENTS, "website_id = 'web_0'")
    cut_off_newest_mutation(chdb_store, EVENTS)

    chdb_store.writer.reopen()

    assert chdb_store.rows("SELECT count() FROM events") == [[4]]
    assert (deleter.state(EVENTS).parts_left, deleter.lost_deletions()) == (0, before + 1)
    deleter.begin(EVENTS, "website_id = 'web_0'")
    wait_until(deleter, EVENTS, lambda state: not state.parts_left)
    deleter.close()
    assert chdb_store.rows("SELECT session_id FROM events ORDER BY session_id") == [["s1"], ["s3"]]


@pytest.mark.clickhouse
def test_only_a_clickhouse_server_that_does_not_respond_may_have_lost_deletions(
    clickhouse_servers: ClickHouseServers,
) -> None:
    (server, _) = clickhouse_servers.servers
    unknown = ClickHouseRowDeleter(parse_address(address_of([server], new_database())))
    with pytest.raises(StoreUnavailable, match="UNKNOWN_DATABASE"):
        unknown.begin(EVENTS, "website_id = 'web_0'")
    after_a_refusal = unknown.lost_deletions()
    unknown.close()
    away = ClickHouseRowDeleter(parse_address(f"clickhouse://127.0.0.1:{free_port()}/test"))
    with pytest.raises(StoreUnavailable, match="no ClickHouse server responds"):
        away.state(EVENTS)
    assert (after_a_refusal, away.lost_deletions()) == (0, 1)
    away.close()


def test_a_deletion_is_not_reported_as_complete_while_its_table_is_detached(
    chdb_store: FreshStore,
) -> None:
    chdb_store.insert(EVENTS, [event(1)])
    deleter = deleter_of(chdb_store)

    with (
        chdb_store.engine.detachments.detaching("events"),
        pytest.raises(StoreUnavailable, match="events is being reopened"),
    ):
        deleter.state(EVENTS)

    assert deleter.state(EVENTS) == IDLE
    deleter.close()
