"""Rows are copied between real servers of ClickHouse until both have the same, each row once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.store_migration.copy_stores import ClickHouseEnd
from headrace.adapters.store_migration.copying import StoreCopy
from headrace.adapters.store_migration.migration_state import MoveDesk, Piece
from headrace.adapters.store_migration.plan import PieceBounds
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.errors import OperatorError
from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, Table
from headrace.model.migration import Day, Figures, Target
from tests.clickhouse_fixture import ClickHouseServers, ClickHouseTables

pytestmark = pytest.mark.clickhouse

NOON_MS = 20_000 * MILLISECONDS_PER_DAY + MILLISECONDS_PER_DAY // 2
SMALL = PieceBounds(rows=7)
TABLES = (EVENTS, ERRORS, PERFORMANCE)

MakeTables = Callable[[], ClickHouseTables]
Row = Mapping[str, Any]


class Quiet:
    """A `CopyProgress` that keeps the last it was told."""

    def __init__(self) -> None:
        self.told = (0, 0)

    def comparing(self) -> None:
        """Do nothing."""

    def copying(self, done: int, total: int) -> None:
        """Keep it."""
        self.told = (done, total)


@pytest.fixture
def make(clickhouse_servers: ClickHouseServers) -> Iterator[MakeTables]:
    """Makes empty tables on one server."""
    made: list[ClickHouseTables] = []

    def one() -> ClickHouseTables:
        made.append(ClickHouseTables(clickhouse_servers.servers[:1]))
        return made[-1]

    yield one
    for tables in made:
        tables.close()


@pytest.fixture
def desk(tmp_path: Path) -> MoveDesk:
    (tmp_path / "moving").mkdir()
    made = MoveDesk(tmp_path)
    made.start(Target.CLICKHOUSE, "rows")
    return made


def copy_of(
    source: ClickHouseTables, target: ClickHouseTables, desk: MoveDesk, bounds: PieceBounds = SMALL
) -> StoreCopy:
    return StoreCopy(
        source=ClickHouseEnd(source.address),
        target=ClickHouseEnd(target.address),
        desk=desk,
        progress=Quiet(),
        bounds=bounds,
    )


def rows(numbers: Sequence[int], *, apart_ms: int = 1000, website: str = "w") -> list[Row]:
    return [
        {
            "id": number.to_bytes(16, "big"),
            "website_id": website,
            "time": NOON_MS + number * apart_ms,
            "path": f"/Grüße {number}\0\t'\\",
        }
        for number in numbers
    ]


def everything(tables: ClickHouseTables, table: Table) -> list[list[Any]]:
    return tables.rows(f"SELECT hex(id), * EXCEPT id FROM `{table.name}` ORDER BY ALL")


def test_all_columns_of_all_tables_are_the_same_afterwards(
    make: MakeTables, desk: MoveDesk
) -> None:
    source, target = make(), make()
    for table in TABLES:
        source.insert(table, rows(range(30), apart_ms=3_600_000))
        source.insert(table, rows(range(30, 40), website="x"))
    numbered = {"value": 0.1, "scroll_depth": -0.0, "properties": b'{"a":"\xf0\x9f\x99\x82"}'}
    source.insert(EVENTS, [{**row, **numbered, "is_bot": True} for row in rows(range(50, 53))])
    copy = copy_of(source, target, desk)
    assert len(copy.compare()) == 3 * 3
    copy.copy()
    assert (copy.copied, copy.compare()) == (123, [])
    for table in TABLES:
        assert everything(target, table) == everything(source, table)
    assert desk.under_way() is None


def test_rows_that_come_late_into_days_that_were_copied_are_all_that_is_copied(
    make: MakeTables, desk: MoveDesk
) -> None:
    source, target = make(), make()
    source.insert(EVENTS, rows(range(0, 40, 2)))
    copy_of(source, target, desk).copy()
    source.insert(EVENTS, rows(range(1, 40, 8)))
    second = copy_of(source, target, desk)
    second.copy()
    assert (second.copied, second.compare()) == (5, [])
    assert everything(target, EVENTS) == everything(source, EVENTS)


def test_more_rows_of_one_moment_than_a_piece_may_have_are_copied(
    make: MakeTables, desk: MoveDesk
) -> None:
    source, target = make(), make()
    source.insert(EVENTS, rows(range(50), apart_ms=0))
    target.insert(EVENTS, rows(range(10, 20), apart_ms=0))
    copy = copy_of(source, target, desk)
    copy.copy()
    assert (copy.copied, copy.compare()) == (40, [])


def test_piece_that_was_stored_when_the_command_was_killed_is_there_once(
    make: MakeTables, desk: MoveDesk, tmp_path: Path
) -> None:
    class Killed(MoveDesk):
        def end(self) -> None:
            raise KeyboardInterrupt

    source, target = make(), make()
    source.insert(EVENTS, rows(range(5)))
    with pytest.raises(KeyboardInterrupt):
        copy_of(source, target, Killed(tmp_path)).copy()
    source.insert(EVENTS, rows([9]))
    copy = copy_of(source, target, desk)
    copy.finish_piece()
    copy.copy()
    assert (copy.copied, copy.compare()) == (1, [])


def test_piece_that_was_not_sent_when_the_command_was_killed_is_sent_first(
    make: MakeTables, desk: MoveDesk, tmp_path: Path
) -> None:
    class Killed(MoveDesk):
        def begin(self, table: str, stream: bytes) -> Piece:
            super().begin(table, stream)
            raise KeyboardInterrupt

    source, target = make(), make()
    source.insert(EVENTS, rows(range(5)))
    with pytest.raises(KeyboardInterrupt):
        copy_of(source, target, Killed(tmp_path)).copy()
    assert everything(target, EVENTS) == []
    copy = copy_of(source, target, desk)
    copy.finish_piece()
    assert everything(target, EVENTS) == everything(source, EVENTS)
    copy.copy()
    assert (copy.copied, copy.compare()) == (0, [])


def test_server_that_fails_is_told_in_a_sentence(make: MakeTables, desk: MoveDesk) -> None:
    source, target = make(), make()
    source.insert(EVENTS, rows(range(5)))
    copy = copy_of(source, target, desk)
    target.execute("DROP TABLE `{database}`.`events` SYNC")
    with pytest.raises(OperatorError, match=r"as it should: .*UNKNOWN_TABLE"):
        copy.copy()


@pytest.mark.parametrize(
    ("there", "rows_in_target"),
    [
        pytest.param([*rows(range(5)), *rows([4])], 6, id="a row is there twice"),
        pytest.param(rows(range(6)), 6, id="a row of nobody"),
        pytest.param([*rows(range(4)), {**rows([4])[0], "path": "/x"}], 5, id="a changed value"),
        pytest.param(
            [*rows(range(4)), {**rows([4])[0], "value": 0.0}], 5, id="a number in place of none"
        ),
    ],
)
def test_what_copying_does_not_mend_is_told_by_website_and_day(
    make: MakeTables, desk: MoveDesk, there: list[Row], rows_in_target: int
) -> None:
    source, target = make(), make()
    source.insert(EVENTS, rows(range(5)))
    target.insert(EVENTS, there)
    copy = copy_of(source, target, desk)
    copy.copy()
    (difference,) = copy.compare()
    assert copy.copied == 0
    assert difference.day == Day("events", "w", 20_000)
    assert (difference.source.rows, difference.target.rows) == (5, rows_in_target)
    assert isinstance(difference.source, Figures)
    assert difference.source.checksum != difference.target.checksum
