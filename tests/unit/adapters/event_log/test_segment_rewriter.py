"""Records of a log are overwritten in place while it is written."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.event_log.segment_rewriter import SegmentRewriter
from headrace.base.clock import SystemClock
from headrace.base.errors import StoreUnavailable
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LOG_START, LogOffset

SECRET = b"secret"


def blank(payload: bytes) -> bytes | None:
    return payload.replace(SECRET, b"......") if SECRET in payload else None


async def append(root: Path, records: Sequence[bytes], segment_bytes: int = 1 << 20) -> SegmentLog:
    log = SegmentLog.open(
        root, "worker-0", metrics=Metrics(), clock=SystemClock(), segment_bytes=segment_bytes
    )
    for record in records:
        await log.append(record)
    return log


def read(root: Path) -> tuple[list[bytes], LogOffset]:
    reader = SegmentReader(root, damaged=root / "damaged")
    end = reader.durable_offsets()["worker-0"]
    offset, records = LOG_START, list[bytes]()
    while offset < end:
        chunk = reader.read("worker-0", after=offset, until=end, max_bytes=64)
        records += [record.payload for record in chunk.records]
        offset = chunk.end
    reader.close()
    return records, end


def all_bytes(root: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(root.rglob("*.segment")))


def only_segment(root: Path) -> Path:
    (segment,) = root.rglob("*.segment")
    return segment


async def test_records_before_the_end_are_overwritten_in_all_segments_while_the_log_is_open(
    tmp_path: Path,
) -> None:
    log = await append(tmp_path, [b"a secret", b"b", b"c secret"], segment_bytes=60)
    _, end = read(tmp_path)
    await log.append(b"later secret")
    assert SegmentRewriter(tmp_path).rewrite({"worker-0": end}, blank) == 2
    await log.append(b"d")
    await log.close()
    records, _ = read(tmp_path)
    assert records == [b"a ......", b"b", b"c ......", b"later secret", b"d"]
    assert SegmentRewriter(tmp_path).rewrite({"worker-0": end}, blank) == 0


async def test_damaged_bytes_are_overwritten_too(tmp_path: Path) -> None:
    log = await append(tmp_path, [b"first", b"x secret x", b"last"])
    await log.close()
    segment = only_segment(tmp_path)
    content = bytearray(segment.read_bytes())
    content[content.index(b"x secret")] ^= 1
    segment.write_bytes(content)
    _, end = read(tmp_path)
    assert SegmentRewriter(tmp_path).rewrite({"worker-0": end}, blank) == 1
    assert SECRET not in all_bytes(tmp_path)
    assert read(tmp_path)[0] == [b"first", b"last"]


async def test_a_log_that_is_gone_has_nothing_to_overwrite(tmp_path: Path) -> None:
    assert SegmentRewriter(tmp_path).rewrite({"worker-9": LogOffset(1, 100)}, blank) == 0


async def test_a_segment_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    log = await append(tmp_path, [b"a secret"])
    await log.close()
    _, end = read(tmp_path)
    segment = only_segment(tmp_path)
    segment.unlink()
    segment.mkdir()
    with pytest.raises(StoreUnavailable, match="cannot overwrite the log"):
        SegmentRewriter(tmp_path).rewrite({"worker-0": end}, blank)


@given(records=st.lists(st.sampled_from([b"", b"x", SECRET, b"y" * 300, b"-" + SECRET])))
async def test_offsets_and_other_records_stay(
    records: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("log")
    log = await append(root, [*records, b"end"], segment_bytes=200)
    await log.close()
    _, end = read(root)
    SegmentRewriter(root).rewrite({"worker-0": end}, blank)
    after, same_end = read(root)
    assert same_end == end
    assert after == [blank(record) or record for record in [*records, b"end"]]
