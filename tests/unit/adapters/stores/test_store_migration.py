"""The migration state of a data directory: the starts that it prevents and the loads it gates."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store_migration.migration_state import (
    GatedLoader,
    MigrationState,
    check_not_migrated_away,
    clickhouse_identity,
)
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.model.migration import MigrationTarget
from headrace.ports.event_log import LogOffset

ENDS = {"worker-0": LogOffset(1, 2)}


class InnerLoader:
    def __init__(self) -> None:
        self.loaded: list[Mapping[str, LogOffset]] = []

    def load_until(self, ends: Mapping[str, LogOffset]) -> None:
        self.loaded.append(ends)


@pytest.fixture
def state(tmp_path: Path) -> MigrationState:
    (tmp_path / "moving").mkdir()
    return MigrationState(tmp_path)


@pytest.mark.parametrize(
    ("to", "is_done", "has_store", "rejection"),
    [
        (MigrationTarget.CLICKHOUSE, False, True, None),
        (MigrationTarget.CLICKHOUSE, False, False, None),
        (
            MigrationTarget.CLICKHOUSE,
            True,
            True,
            "have moved to ClickHouse \\(m\\): set HEADRACE_CLICKHOUSE_URL",
        ),
        (MigrationTarget.CLICKHOUSE, True, False, None),
        (MigrationTarget.EMBEDDED, False, True, "into the data directory is not finished"),
        (MigrationTarget.EMBEDDED, False, False, None),
        (MigrationTarget.EMBEDDED, True, True, None),
        (MigrationTarget.EMBEDDED, True, False, "have moved into the data directory"),
    ],
)
def test_service_starts_only_where_all_rows_are_or_will_be(
    state: MigrationState, tmp_path: Path, *, to: MigrationTarget, is_done: bool, has_store: bool,
    rejection: str | None,
) -> None:  # fmt: skip
    migration = state.start(to, "m")
    if is_done:
        state.mark_done(migration)
    with pytest.raises(OperatorError, match=rejection) if rejection else nullcontext():
        check_not_migrated_away(tmp_path, has_store=has_store)


def test_directory_without_a_migration_starts_with_any_store(tmp_path: Path) -> None:
    check_not_migrated_away(tmp_path, has_store=True)
    check_not_migrated_away(tmp_path, has_store=False)


def test_loading_waits_until_the_migration_is_done(state: MigrationState, tmp_path: Path) -> None:
    migration, loader = state.start(MigrationTarget.CLICKHOUSE, "m"), InnerLoader()
    gated = GatedLoader(loader, tmp_path)
    with pytest.raises(StoreUnavailable, match="run `headrace migrate-store"):
        gated.load_until(ENDS)
    assert loader.loaded == []
    state.mark_done(migration)
    gated.load_until(ENDS)
    assert loader.loaded == [ENDS]


def test_loading_into_clickhouse_continues_during_a_reverse_migration(
    state: MigrationState, tmp_path: Path
) -> None:
    state.start(MigrationTarget.EMBEDDED, "m")
    loader = InnerLoader()
    GatedLoader(loader, tmp_path).load_until(ENDS)
    assert loader.loaded == [ENDS]


def test_chunk_is_kept_with_its_token_until_it_ends(state: MigrationState, tmp_path: Path) -> None:
    state.start(MigrationTarget.CLICKHOUSE, "m")
    chunk = state.begin("events", b"rows")
    assert MigrationState(tmp_path).pending() == chunk
    state.end()
    assert state.pending() is None


def test_new_migration_discards_the_chunk_of_another(state: MigrationState) -> None:
    first = state.start(MigrationTarget.CLICKHOUSE, "m")
    state.begin("events", b"rows")
    assert state.start(MigrationTarget.EMBEDDED, "m").id != first.id
    assert state.pending() is None


def test_only_one_migration_command_runs(state: MigrationState, tmp_path: Path) -> None:
    with (
        state.lock(),
        pytest.raises(OperatorError, match="another `headrace migrate-store` runs already"),
        MigrationState(tmp_path).lock(),
    ):
        pass


def test_damaged_state_file_is_reported(state: MigrationState, tmp_path: Path) -> None:
    (tmp_path / "moving" / "move.json").write_bytes(b"{")
    with pytest.raises(OperatorError, match=r"cannot read .*move\.json"):
        state.read()


def test_store_has_the_same_name_through_other_hosts_and_users() -> None:
    one = parse_address("clickhouse://a:b@h1:1/rows?cluster=c")
    other = parse_address("clickhouses://x:y@h2/rows?cluster=c&quorum=2")
    assert clickhouse_identity(one) == clickhouse_identity(other) == "rows of c"
    assert clickhouse_identity(parse_address("clickhouse://h1/rows")) == "rows"
