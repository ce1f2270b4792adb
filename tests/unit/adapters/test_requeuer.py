"""Entries of the quarantine are appended to their log exactly once, wherever an append ends."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from headrace.adapters.data_dir.paths import RETRY_LOG, DataDirPaths
from headrace.adapters.event_log.segment_format import FRAME_SIZE, HEADER_SIZE
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.quarantine.requeuer import QuarantineRequeuer
from headrace.base.clock import FixedClock
from headrace.base.errors import DurabilityUnknown, HeadraceError, LogUnavailable, OperatorError
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from testing.event_logs import append, payloads_of, segments_of

RECORD = b"no record"
ENTRY = QuarantineEntry("gone", LogOffset(1, 100), "It cannot be decoded", payload=RECORD)
WHOLE_BYTES = HEADER_SIZE + FRAME_SIZE + len(RECORD)


def make_requeuer(paths: DataDirPaths) -> QuarantineRequeuer:
    return QuarantineRequeuer(
        paths.quarantine,
        log_root=paths.log,
        to_log_record=lambda entry: entry.payload or b"",
        record_changes=lambda _by, _changes: None,
        clock=FixedClock(0),
    )


def begin_to_append(paths: DataDirPaths, entry_id: str, *, written_bytes: int) -> None:
    """Leave what a requeuer leaves that ends when so many bytes of a new segment are written."""
    append(paths.root / "whole", RECORD, name=RETRY_LOG)
    (whole,) = segments_of(paths.root / "whole", RETRY_LOG)
    segment = paths.log / RETRY_LOG / whole.name
    segment.parent.mkdir(parents=True)
    segment.write_bytes(whole.read_bytes()[:written_bytes])
    begun = {"id": entry_id, "end": {"segment": 0, "offset": 0}}
    (paths.quarantine / "retry.begun").write_text(json.dumps(begun))


@pytest.mark.parametrize(
    ("written_bytes", "is_appended"),
    [(0, False), (HEADER_SIZE, False), (WHOLE_BYTES - 1, False), (WHOLE_BYTES, True)],
    ids=["empty", "header", "incomplete", "whole"],
)
def test_entry_is_appended_once_wherever_its_first_append_ended(
    tmp_path: Path, written_bytes: int, is_appended: bool
) -> None:
    paths = DataDirPaths(tmp_path)
    files = FileQuarantine(paths.quarantine)
    files.put(ENTRY)
    (entry_id,) = files.ids()
    begin_to_append(paths, entry_id, written_bytes=written_bytes)

    assert make_requeuer(paths).requeue(by="test") == ([] if is_appended else [entry_id])

    assert files.ids() == []
    assert payloads_of(paths.log, RETRY_LOG) == [RECORD]


def test_an_entry_of_a_log_whose_files_are_new_ones_is_requeued(tmp_path: Path) -> None:
    """Its batch is not being stored: the numbers of segments only grow, and 57 is gone."""
    paths = DataDirPaths(tmp_path)
    append(paths.log, RECORD, name="worker-0")
    files = FileQuarantine(paths.quarantine)
    files.put(replace(ENTRY, log="worker-0", position=LogOffset(57, 100)))

    assert make_requeuer(paths).requeue(by="test") == [
        "worker-0-00000000000000000057-0000000100.json"
    ]

    assert (files.ids(), payloads_of(paths.log, RETRY_LOG)) == ([], [RECORD])


@pytest.mark.parametrize("failure", [LogUnavailable, DurabilityUnknown])
def test_entry_whose_append_fails_stays_and_the_next_retry_appends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[HeadraceError]
) -> None:
    paths = DataDirPaths(tmp_path)
    files = FileQuarantine(paths.quarantine)
    files.put(ENTRY)
    ids = files.ids()

    async def fail(_log: SegmentLog, _record: bytes) -> None:
        raise failure("cannot write events to disk: no space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(SegmentLog, "append", fail)
        with pytest.raises(OperatorError) as error:
            make_requeuer(paths).requeue(by="test")

    assert str(error.value) == (
        "cannot requeue all entries: cannot write events to disk: no space left on device"
    )
    assert files.ids() == ids
    assert make_requeuer(paths).requeue(by="test") == ids
    assert payloads_of(paths.log, RETRY_LOG) == [RECORD]
