"""A segment is ahead with zeros while it is written, and has none when it is complete."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from headrace.adapters.event_log import zeroed_space
from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_format import FRAME_SIZE, HEADER_SIZE
from headrace.base.errors import LogUnavailable
from testing.event_logs import KilledWriter, append, open_log, payloads_of, segments_of

SEGMENT_BYTES = 4 * 1024 * 1024
ZEROED_BYTES = 256 * 1024
RECORD = b"record" * 100
LARGE = b"large" * 40_000


class FullDisk(FileOps):
    """Has no room for more bytes at once than a test sets."""

    largest_write: int | None = None

    def write(self, file: int, content: bytes, offset: int) -> None:
        if self.largest_write is not None and len(content) > self.largest_write:
            raise OSError(28, "No space left on device")
        super().write(file, content, offset)


def set_fixed_blocks(monkeypatch: pytest.MonkeyPatch, *, has: bool) -> None:
    def has_fixed_blocks(_file: int) -> bool:
        return has

    monkeypatch.setattr(zeroed_space, "_has_fixed_blocks", has_fixed_blocks)


@pytest.fixture(autouse=True)
def _file_system_with_fixed_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the file system of the tests be one on which zeros help."""
    set_fixed_blocks(monkeypatch, has=True)


def sizes_after(
    root: Path, records: Sequence[bytes], *, segment_bytes: int = SEGMENT_BYTES
) -> list[int]:
    """Return the size of the last segment after each record, and after the log is closed."""

    async def append_each() -> list[int]:
        log = open_log(root, segment_bytes=segment_bytes)
        sizes = list[int]()
        for record in records:
            await log.append(record)
            sizes.append(segments_of(root)[-1].stat().st_size)
        await log.close()
        return [*sizes, segments_of(root)[-1].stat().st_size]

    return asyncio.run(append_each())


def end_after(*records: bytes) -> int:
    return HEADER_SIZE + sum(FRAME_SIZE + len(record) for record in records)


def test_records_overwrite_zeros_and_the_size_of_the_file_stays(tmp_path: Path) -> None:
    ahead = end_after(RECORD) + ZEROED_BYTES
    assert sizes_after(tmp_path, [RECORD] * 3) == [ahead, ahead, ahead, end_after(*[RECORD] * 3)]
    assert payloads_of(tmp_path) == [RECORD] * 3


def test_what_follows_the_last_record_is_zeros(tmp_path: Path) -> None:
    append(tmp_path, RECORD, RECORD, file_ops=KilledWriter())
    (segment,) = segments_of(tmp_path)
    end = end_after(RECORD, RECORD)
    assert segment.read_bytes()[end:] == bytes(ZEROED_BYTES - FRAME_SIZE - len(RECORD))


def test_zeros_are_written_again_when_records_have_reached_their_end(tmp_path: Path) -> None:
    records = [b"x" * 25_000] * 12
    sizes = sizes_after(tmp_path, records)
    assert sizes == [
        *[end_after(records[0]) + ZEROED_BYTES] * 11,
        end_after(*records) + ZEROED_BYTES,
        end_after(*records),
    ]
    assert payloads_of(tmp_path) == records


def test_large_group_is_appended_without_zeros(tmp_path: Path) -> None:
    assert sizes_after(tmp_path, [LARGE]) == [end_after(LARGE)] * 2


def test_zeros_end_where_the_segment_does(tmp_path: Path) -> None:
    assert sizes_after(tmp_path, [RECORD], segment_bytes=2000) == [2000, end_after(RECORD)]


def test_record_longer_than_a_segment_is_followed_by_no_zeros(tmp_path: Path) -> None:
    assert sizes_after(tmp_path, [RECORD], segment_bytes=100) == [end_after(RECORD)] * 2


def test_zeros_of_a_killed_writer_are_cut_off_without_a_report(tmp_path: Path) -> None:
    append(tmp_path, RECORD, file_ops=KilledWriter())
    with capture_logs() as lines:
        assert payloads_of(tmp_path) == [RECORD]
        append(tmp_path, b"more")
    assert lines == []
    assert [segment.stat().st_size for segment in segments_of(tmp_path)] == [
        end_after(RECORD),
        end_after(b"more"),
    ]
    assert payloads_of(tmp_path) == [RECORD, b"more"]


def test_torn_append_within_the_zeros_is_cut_off_and_reported(tmp_path: Path) -> None:
    append(tmp_path, RECORD, file_ops=KilledWriter())
    (segment,) = segments_of(tmp_path)
    with segment.open("r+b") as file:
        file.seek(end_after(RECORD) + 5)
        file.write(b"half a record")
    with capture_logs() as lines:
        assert payloads_of(tmp_path) == [RECORD]
    assert lines == [
        {"event": "log_tail_cut", "log_level": "warning", "log": "worker-0", "cut_bytes": 18}
    ]
    assert segment.stat().st_size == end_after(RECORD)


def test_records_before_the_zeros_are_recovered_without_a_marker(tmp_path: Path) -> None:
    append(tmp_path, RECORD, b"last", file_ops=KilledWriter())
    (tmp_path / "worker-0" / "durable").unlink()
    assert payloads_of(tmp_path) == [RECORD, b"last"]


def test_nothing_is_zeroed_where_little_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def little_space(_file: int) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=31 * SEGMENT_BYTES // 4096, f_frsize=4096)

    monkeypatch.setattr(os, "fstatvfs", little_space)
    assert sizes_after(tmp_path, [RECORD]) == [end_after(RECORD)] * 2


def test_nothing_is_zeroed_where_the_file_system_copies_on_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_fixed_blocks(monkeypatch, has=False)
    assert sizes_after(tmp_path, [RECORD]) == [end_after(RECORD)] * 2


def test_record_is_taken_where_a_quota_has_no_room_for_zeros(tmp_path: Path) -> None:
    disk = FullDisk()
    disk.largest_write = ZEROED_BYTES // 2
    append(tmp_path, RECORD, b"next", file_ops=disk)
    (segment,) = segments_of(tmp_path)
    assert segment.stat().st_size == end_after(RECORD, b"next")
    assert payloads_of(tmp_path) == [RECORD, b"next"]


def test_segment_without_records_has_only_its_header(tmp_path: Path) -> None:
    disk = FullDisk()

    async def probe() -> None:
        log = open_log(tmp_path, segment_bytes=SEGMENT_BYTES, file_ops=disk)
        disk.largest_write = HEADER_SIZE
        with pytest.raises(LogUnavailable):
            await log.append(RECORD)
        assert await log.is_ready()
        assert [segment.stat().st_size for segment in segments_of(tmp_path)] == [HEADER_SIZE]
        await log.close()

    asyncio.run(probe())
