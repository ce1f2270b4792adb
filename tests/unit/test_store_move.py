"""What a data directory knows of a move, which services it keeps from starting, and what waits."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store_migration.migration_state import (
    HeldLoads,
    MoveDesk,
    check_moves,
    name_of,
)
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.model.migration import Target
from headrace.ports.event_log import LogPosition

ENDS = {"worker-0": LogPosition(1, 2)}


class Loads:
    def __init__(self) -> None:
        self.loaded: list[Mapping[str, LogPosition]] = []

    def load_until(self, ends: Mapping[str, LogPosition]) -> None:
        self.loaded.append(ends)


@pytest.fixture
def desk(tmp_path: Path) -> MoveDesk:
    (tmp_path / "moving").mkdir()
    return MoveDesk(tmp_path)


@pytest.mark.parametrize(
    ("to", "is_done", "has_store", "refusal"),
    [
        (Target.CLICKHOUSE, False, True, None),
        (Target.CLICKHOUSE, False, False, None),
        (Target.CLICKHOUSE, True, True, "have moved to ClickHouse \\(m\\): set HEADRACE_STORE"),
        (Target.CLICKHOUSE, True, False, None),
        (Target.EMBEDDED, False, True, "into the data directory is not finished"),
        (Target.EMBEDDED, False, False, None),
        (Target.EMBEDDED, True, True, None),
        (Target.EMBEDDED, True, False, "have moved into the data directory"),
    ],
)
def test_service_starts_only_where_all_rows_are_or_will_be(
    desk: MoveDesk, tmp_path: Path, *, to: Target, is_done: bool, has_store: bool,
    refusal: str | None,
) -> None:  # fmt: skip
    move = desk.start(to, "m")
    if is_done:
        desk.note_done(move)
    with pytest.raises(OperatorError, match=refusal) if refusal else nullcontext():
        check_moves(tmp_path, has_store=has_store)


def test_directory_without_a_move_starts_with_any_store(tmp_path: Path) -> None:
    check_moves(tmp_path, has_store=True)
    check_moves(tmp_path, has_store=False)


def test_loading_waits_until_the_move_is_done(desk: MoveDesk, tmp_path: Path) -> None:
    move, loads = desk.start(Target.CLICKHOUSE, "m"), Loads()
    held = HeldLoads(loads, tmp_path)
    with pytest.raises(StoreUnavailable, match="run `headrace migrate-store"):
        held.load_until(ENDS)
    assert loads.loaded == []
    desk.note_done(move)
    held.load_until(ENDS)
    assert loads.loaded == [ENDS]


def test_loading_into_clickhouse_goes_on_while_rows_are_brought_back(
    desk: MoveDesk, tmp_path: Path
) -> None:
    desk.start(Target.EMBEDDED, "m")
    loads = Loads()
    HeldLoads(loads, tmp_path).load_until(ENDS)
    assert loads.loaded == [ENDS]


def test_piece_is_kept_with_its_token_until_it_ends(desk: MoveDesk, tmp_path: Path) -> None:
    desk.start(Target.CLICKHOUSE, "m")
    piece = desk.begin("events", b"rows")
    assert MoveDesk(tmp_path).under_way() == piece
    desk.end()
    assert desk.under_way() is None


def test_new_move_forgets_the_piece_of_another(desk: MoveDesk) -> None:
    first = desk.start(Target.CLICKHOUSE, "m")
    desk.begin("events", b"rows")
    assert desk.start(Target.EMBEDDED, "m").id != first.id
    assert desk.under_way() is None


def test_only_one_command_moves(desk: MoveDesk, tmp_path: Path) -> None:
    with (
        desk.held(),
        pytest.raises(OperatorError, match="another `headrace migrate-store` runs already"),
        MoveDesk(tmp_path).held(),
    ):
        pass


def test_damaged_note_is_told(desk: MoveDesk, tmp_path: Path) -> None:
    (tmp_path / "moving" / "move.json").write_bytes(b"{")
    with pytest.raises(OperatorError, match=r"move\.json cannot be read"):
        desk.read()


def test_store_has_the_same_name_through_other_hosts_and_users() -> None:
    one = parse_address("clickhouse://a:b@h1:1/rows?cluster=c")
    other = parse_address("clickhouses://x:y@h2/rows?cluster=c&quorum=2")
    assert name_of(one) == name_of(other) == "rows of c"
    assert name_of(parse_address("clickhouse://h1/rows")) == "rows"
