"""`verify` expects the rows of a log that must be stored, and none that need not be."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import pytest

from headrace.adapters.backup.expected_rows import expected_rows
from headrace.model.data_retention import Cutoffs
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    ErasedItems,
    ErrorEvent,
    ErrorRecord,
    Event,
    EventRecord,
    ImportedRows,
    Vital,
    VitalRecord,
    encode_record,
)
from headrace.ports.event_log import LoggedRecord, LogOffset
from testing.event_logs import append, records_of

NOON = 1_768_478_400_000
IDENTITY = "0f" * 16


def events(*names: str, website: str = "shop", time_ms: int = NOON) -> list[Event]:
    return [Event(website, time_ms, name) for name in names]


def logged(root: Path, payloads: Sequence[bytes]) -> list[LoggedRecord]:
    """Append records to the log of a worker and return them with their offsets."""
    append(root, *payloads, name="worker-3", segment_bytes=400)
    return records_of(root, "worker-3")


def row_id(record: LoggedRecord, index: int) -> bytes:
    """Return the id of a row as the format of the store defines it."""
    number = (3 ^ crc32(IDENTITY.encode())) & 0xFFFF
    return (
        NOON.to_bytes(6, "big")
        + number.to_bytes(2, "big")
        + record.start.segment.to_bytes(3, "big")
        + (record.start.offset + index).to_bytes(5, "big")
    )


def found(
    root: Path, loaded: LogOffset, cutoffs: Mapping[str, Cutoffs] | None = None
) -> dict[str, frozenset[bytes]]:
    rows = expected_rows(root / "worker-3", identity=IDENTITY, loaded=loaded, cutoffs=cutoffs or {})
    assert {each.log for each in rows} <= {"worker-3"}
    return {each.table: each.ids for each in rows}


def test_every_item_of_a_loaded_record_is_expected_in_its_table(tmp_path: Path) -> None:
    payloads = [
        encode_record(EventRecord(NOON, UNKNOWN_VISITOR, events("a", "b", "c"))),
        encode_record(VitalRecord(NOON, UNKNOWN_VISITOR, [Vital("shop", NOON, "LCP", 1.0, "/")])),
        encode_record(
            ErrorRecord(NOON, UNKNOWN_VISITOR, [ErrorEvent("shop", NOON, "failed", "/")])
        ),
        encode_record(EventRecord(NOON, UNKNOWN_VISITOR, events("d"))),
        encode_record(EventRecord(NOON, UNKNOWN_VISITOR, events("not loaded yet"))),
    ]
    records = logged(tmp_path, payloads)
    assert records[-1].start.segment > records[0].start.segment
    assert found(tmp_path, records[-2].end) == {
        "events": {
            *(row_id(records[0], index) for index in range(3)),
            row_id(records[3], 0),
        },
        "performance": {row_id(records[1], 0)},
        "errors": {row_id(records[2], 0)},
    }


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(
            EventRecord(NOON, UNKNOWN_VISITOR, events("a"), idempotency_digest=b"digest"),
            (),
            id="with an Idempotency-Key it may be a repeat",
        ),
        pytest.param(
            EventRecord(
                NOON,
                UNKNOWN_VISITOR,
                [Event("shop", NOON, "a", event_id="1"), Event("shop", NOON, "b")],
            ),
            (1,),
            id="with an event id it may be a repeat",
        ),
        pytest.param(
            EventRecord(
                NOON,
                UNKNOWN_VISITOR,
                [Event("shop", NOON, "a", event_id="1")],
                is_requeued=True,
            ),
            (0,),
            id="from the quarantine it is no repeat",
        ),
        pytest.param(
            EventRecord(
                NOON, UNKNOWN_VISITOR, events("a"), imported=ImportedRows(b"i" * 16, [NOON])
            ),
            (),
            id="imported rows have ids of their own",
        ),
        pytest.param(
            EventRecord(
                NOON, UNKNOWN_VISITOR, events("a", "", "c"), erased=ErasedItems((1,)), expired=(2,)
            ),
            (0,),
            id="erased and expired items are not stored",
        ),
        pytest.param(
            EventRecord(
                NOON,
                UNKNOWN_VISITOR,
                [
                    *events("too old", time_ms=NOON - 1),
                    *events("first day"),
                    *events("kept for ever", website="blog", time_ms=NOON - 1),
                ],
            ),
            (1, 2),
            id="rows before the cutoff of their website may be pruned",
        ),
    ],
)
def test_items_that_need_not_be_stored_under_their_offset_are_not_expected(
    tmp_path: Path, record: EventRecord, expected: Sequence[int]
) -> None:
    (logged_record,) = logged(tmp_path, [encode_record(record)])
    ids = found(tmp_path, logged_record.end, {"shop": Cutoffs(events=NOON)})
    assert ids.get("events", frozenset()) == {row_id(logged_record, index) for index in expected}


def test_record_that_cannot_be_decoded_was_quarantined(tmp_path: Path) -> None:
    good = encode_record(EventRecord(NOON, UNKNOWN_VISITOR, events("a")))
    records = logged(tmp_path, [b"\xc1 no record", good])
    assert found(tmp_path, records[-1].end) == {"events": {row_id(records[1], 0)}}
