"""Divides the rows of an export into chunks that fit memory."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from headrace.model.export import Chunk

BUCKETS_MS: Final = (86_400_000, 60_000, 1)
"""The widths by which times are divided: a day, its minutes, their milliseconds."""

MAX_BUCKETS: Final = 200_000
"""More than the days of two centuries, the minutes of a day or the milliseconds of a minute."""

_MAX_SLICES: Final = 1 << 24

BucketCounts = Sequence[Sequence[int]]
"""Numbers of buckets and the rows in each, oldest first, without empty buckets."""

CountRows = Callable[[int, int, int], Awaitable[BucketCounts]]
"""Counts the rows with `start_ms` <= time < `end_ms` in buckets of `width_ms`."""


async def plan_chunks(
    count: CountRows, start_ms: int, end_ms: int, *, max_rows: int
) -> tuple[Chunk, ...]:
    """Return chunks of at most about `max_rows` rows, in order of time; at least one.

    Each row is in one chunk. Only the times of rows are read: once for the days, and again for
    days and minutes that are too many for one chunk.
    """
    chunks = [one async for one in _divide(count, start_ms, end_ms, BUCKETS_MS, max_rows=max_rows)]
    return tuple(chunks) or (Chunk(start_ms, end_ms, 0),)


def split_chunk(chunk: Chunk) -> tuple[Chunk, Chunk] | None:
    """Return both halves of a chunk whose rows are too large; None for one that cannot be split."""
    middle_ms = (chunk.start_ms + chunk.end_ms) // 2
    if middle_ms > chunk.start_ms:
        return replace(chunk, end_ms=middle_ms), replace(chunk, start_ms=middle_ms)
    if chunk.slices >= _MAX_SLICES:
        return None
    slices = 2 * chunk.slices
    return (
        replace(chunk, slices=slices),
        replace(chunk, slices=slices, slice_index=chunk.slice_index + chunk.slices),
    )


async def _divide(
    count: CountRows, start_ms: int, end_ms: int, widths_ms: Sequence[int], *, max_rows: int
) -> AsyncIterator[Chunk]:
    """Merge neighbouring buckets up to `max_rows`, and divide each bucket with more."""
    width_ms, *finer_ms = widths_ms
    pending: Chunk | None = None
    for bucket, rows in await count(start_ms, end_ms, width_ms):
        first_ms = max(bucket * width_ms, start_ms)
        next_ms = min((bucket + 1) * width_ms, end_ms)
        if pending is not None and pending.rows + rows > max_rows:
            yield pending
            pending = None
        if rows <= max_rows:
            before = pending or Chunk(first_ms, next_ms, 0)
            pending = replace(before, end_ms=next_ms, rows=before.rows + rows)
        elif finer_ms:
            async for chunk in _divide(count, first_ms, next_ms, finer_ms, max_rows=max_rows):
                yield chunk
        else:
            for chunk in _slice(Chunk(first_ms, next_ms, rows), max_rows):
                yield chunk
    if pending is not None:
        yield pending


def _slice(chunk: Chunk, max_rows: int) -> Iterator[Chunk]:
    """Divide the rows of one millisecond by a hash of their ids."""
    slices = 1 << ((chunk.rows - 1) // max_rows).bit_length()
    for index in range(slices):
        yield replace(chunk, rows=chunk.rows // slices, slices=slices, slice_index=index)
