"""How the rows of an export are divided into chunks."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.export import Chunk
from headrace.query.export.chunks import BucketCounts, plan_chunks, split_chunk

DAY_MS = 86_400_000
START_MS, END_MS = 0, 100 * DAY_MS


def plan(times_ms: list[int], *, max_rows: int) -> tuple[Chunk, ...]:
    async def count(start_ms: int, end_ms: int, width_ms: int) -> BucketCounts:
        within = [time_ms for time_ms in times_ms if start_ms <= time_ms < end_ms]
        return sorted(Counter(time_ms // width_ms for time_ms in within).items())

    return asyncio.run(plan_chunks(count, START_MS, END_MS, max_rows=max_rows))


def test_days_with_few_rows_share_a_chunk() -> None:
    assert plan([1, DAY_MS, 5 * DAY_MS], max_rows=2) == (
        Chunk(0, 2 * DAY_MS, 2),
        Chunk(5 * DAY_MS, 6 * DAY_MS, 1),
    )


def test_day_with_too_many_rows_is_divided_by_its_minutes_and_milliseconds() -> None:
    assert plan([0, 60_000, 60_001, 60_002, DAY_MS], max_rows=2) == (
        Chunk(0, 60_000, 1),
        Chunk(60_000, 60_002, 2),
        Chunk(60_002, 60_003, 1),
        Chunk(DAY_MS, 2 * DAY_MS, 1),
    )


def test_millisecond_with_too_many_rows_is_divided_by_a_hash() -> None:
    assert plan([7] * 5, max_rows=2) == tuple(
        Chunk(7, 8, 1, slice_index=index, slices=4) for index in range(4)
    )


def test_export_without_rows_has_one_chunk_that_brings_the_columns() -> None:
    assert plan([], max_rows=2) == (Chunk(START_MS, END_MS, 0),)


@given(
    st.lists(st.integers(START_MS, END_MS - 1) | st.integers(0, 3), max_size=60),
    st.integers(1, 10),
)
def test_every_row_is_in_exactly_one_chunk_and_no_chunk_has_too_many(
    times_ms: list[int], max_rows: int
) -> None:
    chunks = plan(times_ms, max_rows=max_rows)
    bounds = [(chunk.start_ms, chunk.end_ms) for chunk in chunks if chunk.slice_index == 0]
    for time_ms in times_ms:
        assert sum(start_ms <= time_ms < end_ms for start_ms, end_ms in bounds) == 1
    assert bounds == sorted(bounds)
    assert all(chunk.rows <= max_rows for chunk in chunks)


@pytest.mark.parametrize(
    ("chunk", "halves"),
    [
        pytest.param(Chunk(0, 10, 4), (Chunk(0, 5, 4), Chunk(5, 10, 4)), id="by time"),
        pytest.param(
            Chunk(7, 8, 4), (Chunk(7, 8, 4, 0, 2), Chunk(7, 8, 4, 1, 2)), id="by a first hash"
        ),
        pytest.param(
            Chunk(7, 8, 4, 1, 2), (Chunk(7, 8, 4, 1, 4), Chunk(7, 8, 4, 3, 4)), id="by more of it"
        ),
        pytest.param(Chunk(7, 8, 4, 0, 1 << 24), None, id="not at all"),
    ],
)
def test_chunk_that_is_too_large_is_halved(
    chunk: Chunk, halves: tuple[Chunk, Chunk] | None
) -> None:
    assert split_chunk(chunk) == halves
