"""What the log of retried entries has is found, with where it was rejected."""

from contextlib import closing
from pathlib import Path

import pytest

from headrace.adapters.data_dir.paths import RETRY_LOG
from headrace.adapters.engine.requeued_items import read_requeued_items
from headrace.base.errors import StoreUnavailable
from headrace.ingest.load.requeue import to_log_record
from headrace.model.log_records import UNKNOWN_VISITOR, Event, EventRecord, encode_record
from headrace.ports.event_log import LogOffset
from headrace.ports.ledger import RequeuedItem
from headrace.ports.quarantine import QuarantineEntry
from testing.event_logs import append, reader_of, segments_of

RECEIVED_MS = 1_750_000_000_000


def rejected(segment: int, index: int) -> QuarantineEntry:
    item = {"website_id": "web_a", "time_ms": 0, "name": "a", "received_ms": RECEIVED_MS + index}
    return QuarantineEntry("worker-0", LogOffset(segment, 30), "", "events", index, item)


def read(root: Path) -> list[RequeuedItem]:
    with closing(reader_of(root)) as reader:
        return list(read_requeued_items(reader))


def test_items_of_all_segments_are_found_among_records_without_a_position(tmp_path: Path) -> None:
    undecodable = QuarantineEntry("worker-0", LogOffset(1, 30), "", payload=b"no record")
    of_an_earlier_version = EventRecord(
        RECEIVED_MS, UNKNOWN_VISITOR, [Event("web_a", 0, "a")], is_requeued=True
    )
    root = tmp_path / "log"
    append(root, *map(to_log_record, (rejected(1, 0), undecodable)), name=RETRY_LOG)
    append(
        root, encode_record(of_an_earlier_version), to_log_record(rejected(2, 7)), name=RETRY_LOG
    )
    assert len(segments_of(root, RETRY_LOG)) == 2
    assert read(root) == [
        RequeuedItem("worker-0", LogOffset(1, 30), 0, RECEIVED_MS),
        RequeuedItem("worker-0", LogOffset(2, 30), 7, RECEIVED_MS + 7),
    ]


def test_there_are_none_where_nothing_was_retried(tmp_path: Path) -> None:
    append(tmp_path / "log", b"a record")
    assert read(tmp_path / "log") == []


def test_a_log_whose_end_is_unknown_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "log"
    append(root, to_log_record(rejected(1, 0)), name=RETRY_LOG)
    (segment,) = segments_of(root, RETRY_LOG)
    segment.unlink()
    segment.mkdir()
    with pytest.raises(StoreUnavailable, match=r"cannot be read now, in the log retry$"):
        read(root)
