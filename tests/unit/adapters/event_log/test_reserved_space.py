"""A segment has its space before it grows into it, and keeps none of it when it is complete."""

import asyncio
import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace.adapters.event_log import reserved_space
from headrace.adapters.event_log.segment_format import FRAME_SIZE, HEADER_SIZE
from testing.event_logs import KilledWriter, append, open_log, payloads_of, segments_of

SEGMENT_BYTES = 8 * 1024 * 1024
RECORD = b"record" * 100


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory of the logs, on ext4."""
    if shutil.which("stat") is None:
        pytest.skip("stat is not installed")
    command = ["stat", "--file-system", "--format=%T", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if found != "ext2/ext3":  # and ext4: they have one number
        pytest.skip(f"space is reserved on ext4, and this is {found or 'another system'}")
    return tmp_path / "log"


def unused(segment: Path) -> int:
    """Return how many bytes a file has on the disk beyond its last block."""
    status = segment.stat()
    blocks = -(-status.st_size // status.st_blksize)
    return status.st_blocks * 512 - blocks * status.st_blksize


def in_use(root: Path, check: Callable[[], None]) -> None:
    """Append a record, and check the log while it is open."""

    async def append_and_check() -> None:
        log = open_log(root, segment_bytes=SEGMENT_BYTES)
        await log.append(RECORD)
        check()
        await log.close()

    asyncio.run(append_and_check())


def test_space_of_a_whole_segment_is_reserved_and_its_size_stays(root: Path) -> None:
    def check() -> None:
        (segment,) = segments_of(root)
        assert segment.stat().st_size < SEGMENT_BYTES // 4
        assert segment.stat().st_blocks * 512 == SEGMENT_BYTES

    in_use(root, check)
    assert payloads_of(root) == [RECORD]


def test_reserved_space_is_freed_when_the_log_is_closed(root: Path) -> None:
    append(root, RECORD, segment_bytes=SEGMENT_BYTES)
    (segment,) = segments_of(root)
    assert unused(segment) == 0
    assert payloads_of(root) == [RECORD]


def test_reserved_space_is_freed_when_a_segment_is_full(root: Path) -> None:
    half = b"x" * (SEGMENT_BYTES // 2)
    append(root, half, half, half, segment_bytes=SEGMENT_BYTES)
    assert [unused(segment) for segment in segments_of(root)] == [0, 0, 0]


def test_reserved_space_of_a_killed_writer_is_freed_by_the_next_one(root: Path) -> None:
    append(root, RECORD, file_ops=KilledWriter(), segment_bytes=SEGMENT_BYTES)
    (segment,) = segments_of(root)
    assert unused(segment) > SEGMENT_BYTES // 2
    append(root, segment_bytes=SEGMENT_BYTES)
    assert unused(segment) == 0
    assert payloads_of(root) == [RECORD]


def test_reserved_space_of_a_log_without_a_writer_is_freed_by_its_reader(root: Path) -> None:
    append(root, RECORD, file_ops=KilledWriter(), segment_bytes=SEGMENT_BYTES)
    assert payloads_of(root) == [RECORD]
    (segment,) = segments_of(root)
    assert unused(segment) == 0


def test_record_longer_than_the_reserved_space_is_whole(root: Path) -> None:
    long = b"y" * (2 * SEGMENT_BYTES)
    append(root, long, segment_bytes=SEGMENT_BYTES)
    assert payloads_of(root) == [long]


def test_nothing_is_reserved_where_little_is_free(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def little_space(_file: int) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=31 * SEGMENT_BYTES // 4096, f_frsize=4096)

    monkeypatch.setattr(os, "fstatvfs", little_space)
    in_use(root, lambda: check_unreserved(root))


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOSPC])
def test_disk_that_cannot_reserve_is_written_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(_file: int, _size: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(reserved_space, "_allocate", refuse)
    in_use(root, lambda: check_unreserved(root))
    assert payloads_of(root) == [RECORD]


def check_unreserved(root: Path) -> None:
    (segment,) = segments_of(root)
    assert unused(segment) == 0


def test_segment_ends_with_what_is_reserved_in_few_pieces(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserved_space, "_SMALLEST_BYTES", SEGMENT_BYTES // 8)
    found = chain([9, 4, 3], repeat(1))  # a quarter of the size is in few enough pieces

    def count(_file: int) -> int:
        return next(found)

    monkeypatch.setattr(reserved_space, "_number_of_extents", count)
    quarter = b"z" * (SEGMENT_BYTES // 4 - 50)
    append(root, quarter, b"next", b"last", segment_bytes=SEGMENT_BYTES)
    assert [segment.stat().st_size for segment in segments_of(root)] == [
        HEADER_SIZE + FRAME_SIZE + len(quarter),
        HEADER_SIZE + 2 * (FRAME_SIZE + 4),
    ]
