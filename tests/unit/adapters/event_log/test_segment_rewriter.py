"""Records of a log are overwritten in place while it is written."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.event_log.segment_rewriter import SegmentRewriter
from headrace.base.errors import StoreUnavailable
from headrace.ports.event_log import LogOffset
from testing.event_logs import WORKER, append, open_log, payloads_of, reader_of

SECRET = b"secret"


def blank(payload: bytes) -> bytes | None:
    return payload.replace(SECRET, b"......") if SECRET in payload else None


async def opened_with(root: Path, *records: bytes) -> SegmentLog:
    """Return a log that is still open."""
    log = open_log(root, segment_bytes=60)
    for record in records:
        await log.append(record)
    return log


def end_of(root: Path) -> LogOffset:
    with closing(reader_of(root)) as reader:
        return reader.durable_offsets()[WORKER]


def all_bytes(root: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(root.rglob("*.segment")))


def only_segment(root: Path) -> Path:
    (segment,) = root.rglob("*.segment")
    return segment


async def test_records_before_the_end_are_overwritten_in_all_segments_while_the_log_is_open(
    tmp_path: Path,
) -> None:
    root = tmp_path / "log"
    log = await opened_with(root, b"a secret", b"b", b"c secret")
    end = end_of(root)
    await log.append(b"later secret")
    assert SegmentRewriter(root).rewrite({WORKER: end}, blank) == 2
    await log.append(b"d")
    await log.close()
    assert payloads_of(root) == [b"a ......", b"b", b"c ......", b"later secret", b"d"]
    assert SegmentRewriter(root).rewrite({WORKER: end}, blank) == 0


def test_damaged_bytes_are_overwritten_too(tmp_path: Path) -> None:
    root = tmp_path / "log"
    append(root, b"first", b"x secret x", b"last")
    segment = only_segment(root)
    content = bytearray(segment.read_bytes())
    content[content.index(b"x secret")] ^= 1
    segment.write_bytes(content)
    assert SegmentRewriter(root).rewrite({WORKER: end_of(root)}, blank) == 1
    assert SECRET not in all_bytes(root)
    assert payloads_of(root) == [b"first", b"last"]


def test_a_log_that_is_gone_has_nothing_to_overwrite(tmp_path: Path) -> None:
    assert SegmentRewriter(tmp_path).rewrite({"worker-9": LogOffset(1, 100)}, blank) == 0


def test_a_segment_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "log"
    append(root, b"a secret")
    end = end_of(root)
    segment = only_segment(root)
    segment.unlink()
    segment.mkdir()
    with pytest.raises(StoreUnavailable, match="cannot overwrite the log"):
        SegmentRewriter(root).rewrite({WORKER: end}, blank)


@given(records=st.lists(st.sampled_from([b"", b"x", SECRET, b"y" * 300, b"-" + SECRET])))
def test_offsets_and_other_records_stay(
    records: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("log") / "log"
    append(root, *records, b"end", segment_bytes=200)
    end = end_of(root)
    SegmentRewriter(root).rewrite({WORKER: end}, blank)
    assert end_of(root) == end
    assert payloads_of(root) == [blank(record) or record for record in [*records, b"end"]]
