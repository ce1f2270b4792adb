"""The planned reads of a copy: merged up to the limits, without rows that the target has."""

from collections.abc import Sequence

import pytest

from headrace.adapters.store_migration.plan import (
    ChunkLimits,
    DayToCopy,
    MinuteDigests,
    ReadRange,
    SizedDigest,
    plan_read_ranges,
)
from headrace.adapters.store_migration.selects import MINUTE_MS, RowRange
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.migration import DayKey, Digest

BOUNDS = ChunkLimits(rows=100, bytes=1000)


def sized(rows: int, size: int = 0, checksum: int = 1) -> SizedDigest:
    return SizedDigest(Digest(rows, checksum), size)


def wanted(day: int, rows: int, *, website: str = "w", table: str = "events", size: int = 0,
           is_absent: bool = True) -> DayToCopy:  # fmt: skip
    return DayToCopy(DayKey(table, website, day), sized(rows, size), is_absent)


def days(first: int, last: int, *, website: str = "w", table: str = "events") -> ReadRange:
    row_range = RowRange(
        website_id=website,
        from_ms=first * MILLISECONDS_PER_DAY,
        until_ms=(last + 1) * MILLISECONDS_PER_DAY,
    )
    return ReadRange(table, row_range, is_absent=True)


def minutes(
    first: int, last: int, *, is_absent: bool = True, parts: int = 1, part: int = 0
) -> ReadRange:
    row_range = RowRange(
        website_id="w",
        from_ms=first * MINUTE_MS,
        until_ms=(last + 1) * MINUTE_MS,
        parts=parts,
        part=part,
    )
    return ReadRange("events", row_range, is_absent)


NO_MINUTES = MinuteDigests({}, {})


@pytest.mark.parametrize(
    ("sent_query", "planned"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([wanted(1, 40), wanted(2, 60)], [days(1, 2)], id="days that fit"),
        pytest.param([wanted(1, 40), wanted(2, 61)], [days(1, 1), days(2, 2)], id="too many rows"),
        pytest.param(
            [wanted(1, 1, size=600), wanted(2, 1, size=401)],
            [days(1, 1), days(2, 2)],
            id="too many bytes",
        ),
        pytest.param(
            [wanted(1, 1), wanted(3, 1)], [days(1, 1), days(3, 3)], id="a day between is there"
        ),
        pytest.param(
            [wanted(1, 1), wanted(2, 1, website="x")],
            [days(1, 1), days(2, 2, website="x")],
            id="another website",
        ),
        pytest.param([wanted(-2, 1), wanted(-1, 1)], [days(-2, -1)], id="before 1970"),
    ],
)
def test_missing_days_are_read_together(
    sent_query: Sequence[DayToCopy], planned: list[ReadRange]
) -> None:
    assert list(plan_read_ranges(sent_query, lambda _: NO_MINUTES, BOUNDS)) == planned


@pytest.mark.parametrize(
    ("source", "target", "planned"),
    [
        pytest.param({7: sized(60), 8: sized(40)}, {}, [minutes(7, 8)], id="fit together"),
        pytest.param(
            {7: sized(60), 9: sized(41)}, {}, [minutes(7, 7), minutes(9, 9)], id="too many"
        ),
        pytest.param(
            {7: sized(5), 8: sized(5)}, {7: sized(5)}, [minutes(8, 8)], id="the same are left out"
        ),
        pytest.param(
            {7: sized(5), 8: sized(5, checksum=2)},
            {8: sized(5)},
            [minutes(7, 8, is_absent=False)],
            id="a checksum differs",
        ),
        pytest.param(
            {7: sized(5), 8: sized(5), 9: sized(5)},
            {8: sized(5)},
            [minutes(7, 9, is_absent=False)],
            id="one between is there",
        ),
        pytest.param(
            {7: sized(250)},
            {},
            [minutes(7, 7, parts=3, part=part) for part in range(3)],
            id="a minute with more than a piece",
        ),
    ],
)
def test_mismatching_days_are_read_by_minutes(
    source: dict[int, SizedDigest], target: dict[int, SizedDigest], planned: list[ReadRange]
) -> None:
    day = wanted(0, 101, is_absent=not target)
    assert list(plan_read_ranges([day], lambda _: MinuteDigests(source, target), BOUNDS)) == planned


def test_days_around_a_partially_copied_day_are_read_separately() -> None:
    sent_query = [wanted(1, 1), wanted(2, 1, is_absent=False), wanted(3, 1)]
    target_digests = MinuteDigests({2880: sized(1)}, {2880: sized(1, checksum=2)})
    assert list(plan_read_ranges(sent_query, lambda _: target_digests, BOUNDS)) == [
        days(1, 1),
        minutes(2880, 2880, is_absent=False),
        days(3, 3),
    ]
