"""The loader: it stores, quarantines or drops as a duplicate every accepted item, exactly once."""

import errno
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from headrace.adapters.engine.requeued_items import read_requeued_items
from headrace.adapters.memory.store import MemoryStore, Row
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock
from headrace.base.errors import StoreUnavailable
from headrace.base.metrics import Metrics
from headrace.formats.event_ids import event_key, keyed_digest
from headrace.ingest.load.batch_reader import BatchLimits
from headrace.ingest.load.columns import TABLE_MAPPINGS, TableMapping
from headrace.ingest.load.loader import Loader
from headrace.ingest.load.requeue import to_log_record
from headrace.model.catalog import EVENTS, Table
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    ErasedItems,
    ErrorEvent,
    ErrorRecord,
    Event,
    EventKind,
    EventRecord,
    ImportedRows,
    Vital,
    VitalRecord,
    decode_record,
    encode_record,
)
from headrace.ports.event_log import LOG_START, LogChunk, LoggedRecord, LogOffset
from headrace.ports.ledger import LogRange, RequeuedItem
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.store import BatchRejected

NOON = 1_700_000_000_000
DAY = MILLISECONDS_PER_DAY


class ListedLogs:
    """A `LogReader` over lists of records: one segment each; offset N is the start of record N."""

    segment = 1
    newest = 1

    def __init__(self, **logs: Sequence[bytes]) -> None:
        self.logs = {name.replace("_", "-"): list(records) for name, records in logs.items()}
        self.removed: list[tuple[str, LogOffset]] = []

    def durable_offsets(self) -> Mapping[str, LogOffset]:
        return {name: self.offset_at(len(records)) for name, records in self.logs.items()}

    def offset_at(self, offset: int) -> LogOffset:
        return LogOffset(self.segment, offset)

    def read(self, log: str, *, after: LogOffset, until: LogOffset, max_bytes: int) -> LogChunk:
        assert max_bytes > 0
        last = min(until.offset, after.offset + 2)
        offsets = [self.offset_at(offset) for offset in range(after.offset, last + 1)]
        records = [
            LoggedRecord(self.logs[log][start.offset], start, end)
            for start, end in itertools.pairwise(offsets)
        ]
        return LogChunk(records, offsets[-1])

    def unreadable(self) -> Sequence[str]:
        return ()

    def newest_segment(self, log: str) -> int:
        del log  # they all have the same segments
        return max(self.segment, self.newest)

    def size_between(self, log: str, *, after: LogOffset, until: LogOffset) -> int:
        return sum(map(len, self.logs[log][after.offset : until.offset]))

    def truncate_before(self, log: str, offset: LogOffset) -> None:
        self.removed.append((log, offset))


class RecordingStore(MemoryStore):
    """Records the tokens it receives; unavailable for the inserts with the given numbers."""

    def __init__(self, *, unavailable: Sequence[int] = (), **options: Any) -> None:
        super().__init__(**options)
        self.unavailable = unavailable
        self.tokens: list[str] = []

    def insert(
        self,
        table: Table,
        arrow_stream: bytes,
        *,
        token: str,
        shards: int | None = None,
        first_attempt: bool = False,
    ) -> None:
        self.tokens.append(token)
        if len(self.tokens) in self.unavailable:
            raise StoreUnavailable("The engine is away.")
        super().insert(table, arrow_stream, token=token, shards=shards, first_attempt=first_attempt)


@dataclass
class Harness:
    """A loader with its dependencies."""

    logs: ListedLogs
    store: MemoryStore
    ledger: SqliteLedger
    metrics: Metrics
    loader: Loader
    quarantine: Path

    def names(self) -> list[str]:
        return [row["event_name"] for row in self.store.rows["events"]]

    def quarantined(self) -> list[dict[str, Any]]:
        return [json.loads(file.read_text()) for file in sorted(self.quarantine.glob("*"))]

    def metric(self, line: str) -> float:
        lines = self.metrics.render().decode().splitlines()
        return float(next((text.split()[-1] for text in lines if text.startswith(line)), 0))


MakeHarness = Callable[..., Harness]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[MakeHarness]:
    opened = ExitStack()

    def make(logs: ListedLogs, store: MemoryStore | None = None, **options: Any) -> Harness:
        store = store or MemoryStore()
        ledger = SqliteLedger.open(tmp_path / "ledger.sqlite")
        opened.callback(ledger.close)
        metrics, quarantine = Metrics(), tmp_path / "quarantine"
        loader = Loader(
            log=logs,
            ledger=ledger,
            store=store,
            quarantine=FileQuarantine(quarantine),
            metrics=metrics,
            clock=FixedClock(NOON + 30 * DAY),
            **options,
        )
        return Harness(logs, store, ledger, metrics, loader, quarantine)

    with opened:
        yield make


def events(
    *names: str,
    at_ms: int = NOON,
    event_id: str = "",
    website: str = "web_a",
    key: bytes = b"",
    has_api_key: bool | None = True,
    expired: tuple[int, ...] = (),
) -> bytes:
    items = [Event(website, at_ms, name, event_id=event_id) for name in names]
    record = EventRecord(at_ms, UNKNOWN_VISITOR, items, key, has_api_key, expired=expired)
    return encode_record(record)


def vital(event_id: str = "", *, has_api_key: bool = True) -> bytes:
    item = Vital("web_a", NOON, "LCP", 1.5, "/", event_id=event_id)
    return encode_record(VitalRecord(NOON, UNKNOWN_VISITOR, [item], has_api_key=has_api_key))


def error(event_id: str = "", *, has_api_key: bool = True) -> bytes:
    item = ErrorEvent("web_a", NOON, "oops", "/", event_id=event_id)
    return encode_record(ErrorRecord(NOON, UNKNOWN_VISITOR, [item], has_api_key=has_api_key))


def named(*names: str) -> Callable[[Row], bool]:
    return lambda row: row.get("event_name") in names


def test_durable_records_are_stored_in_their_tables(harness: MakeHarness) -> None:
    made = harness(ListedLogs(worker_0=[events("a", "b"), vital()], worker_1=[error()]))
    assert made.loader.load_available() == 4
    counts = {table: len(rows) for table, rows in made.store.rows.items()}
    assert counts == {"events": 2, "performance": 1, "errors": 1}
    assert made.ledger.stored_offsets() == made.logs.durable_offsets()
    assert made.ledger.pending_batch() is None


def test_loading_again_stores_nothing_more(harness: MakeHarness) -> None:
    made = harness(ListedLogs(worker_0=[events("a")]))
    assert [made.loader.load_available() for _ in range(2)] == [1, 0]
    assert made.names() == ["a"]


def imported(*names: str, at_ms: int = NOON) -> tuple[bytes, list[bytes]]:
    """Return a record of an import, received a minute later, and the ids of its rows."""
    items = [Event("web_a", at_ms, name) for name in names]
    ids = [(7 << 64 | number).to_bytes(16, "big") for number, _ in enumerate(names)]
    received_ms = [at_ms + number for number, _ in enumerate(names)]
    rows = ImportedRows(b"".join(ids), received_ms)
    record = EventRecord(at_ms + 60_000, UNKNOWN_VISITOR, items, has_api_key=True, imported=rows)
    return encode_record(record), ids


def test_imported_items_keep_their_ids_and_times_of_receipt(harness: MakeHarness) -> None:
    record, ids = imported("a", "b")
    made = harness(ListedLogs(worker_0=[events("sent")], **{"import": [record]}))
    made.loader.load_available()
    rows = {row["event_name"]: row for row in made.store.rows["events"]}
    assert [rows[name]["id"] for name in "ab"] == ids
    received = [rows[name]["received_at"].timestamp() * 1000 for name in "ab"]
    assert received == [NOON, NOON + 1]
    assert rows["sent"]["id"] not in ids
    assert made.ledger.imported_offsets() == {7: ids[1][8:]}


def test_quarantined_import_is_requeued_with_its_id(harness: MakeHarness) -> None:
    record, ids = imported("good", "bad")
    made = harness(ListedLogs(**{"import": [record]}), MemoryStore(rejects=named("bad")))
    made.loader.load_available()
    (entry,) = made.quarantined()
    requeued = decode_record(to_log_record(msgspec.convert(entry, QuarantineEntry)))
    assert requeued.imported == ImportedRows(ids[1], [NOON + 1])
    assert [item.website_id for item in requeued.items] == ["web_a"]


@pytest.mark.parametrize("max_rows", [1, 100], ids=["batch-by-batch", "one-batch"])
@pytest.mark.parametrize("has_api_key", [True, False, None], ids=["key", "no key", "unknown"])
def test_requeued_item_is_stored_with_its_event_id_which_is_known(
    harness: MakeHarness, max_rows: int, has_api_key: bool | None
) -> None:
    rejected = {"bad"}
    logs = ListedLogs(worker_0=[events("bad", event_id="x", has_api_key=has_api_key)])
    made = harness(
        logs,
        MemoryStore(rejects=lambda row: row["event_name"] in rejected),
        limits=BatchLimits(max_rows=max_rows),
    )
    made.loader.load_available()
    (entry,) = made.quarantined()
    rejected.clear()

    logs.logs["retry"] = [to_log_record(msgspec.convert(entry, QuarantineEntry))]
    logs.logs["worker-0"].append(events("repeat", event_id="x", has_api_key=has_api_key))
    made.loader.load_available()

    assert made.names() == ["bad"]
    expected = event_key(keyed_digest(EventKind.EVENTS, "web_a", "x"))
    assert [row["event_key"] for row in made.store.rows["events"]] == [expected]


REJECTED_RECORDS: Mapping[str, Callable[[], bytes]] = {
    "events": lambda: events("a", "bad", "b"),
    "imported": lambda: imported("a", "bad", "b")[0],
    "erased": lambda: encode_record(
        msgspec.structs.replace(decode_record(events("bad", "bad")), erased=ErasedItems((0,)))
    ),
}


@pytest.mark.parametrize("make_record", REJECTED_RECORDS.values(), ids=REJECTED_RECORDS)
@pytest.mark.parametrize("rejected", [["bad"], []], ids=["rejected again", "accepted now"])
@pytest.mark.parametrize("has_pending_batch", [False, True], ids=["new batch", "pending batch"])
def test_retried_item_is_stored_once_where_the_logs_are_loaded_again(
    harness: MakeHarness,
    make_record: Callable[[], bytes],
    rejected: list[str],
    has_pending_batch: bool,
) -> None:
    logs = ListedLogs(worker_0=[events("first"), make_record()])
    made = harness(logs, MemoryStore(rejects=named("bad")))
    made.loader.load_available()
    (stored,) = FileQuarantine(made.quarantine).decodable_entries()
    corrected = {**(stored.entry.item or {}), "name": "good"}
    logs.logs["retry"] = [to_log_record(msgspec.structs.replace(stored.entry, item=corrected))]
    FileQuarantine(made.quarantine).remove(stored.id)
    made.loader.load_available()
    before = sorted(made.names())
    assert before == sorted({*before, "first", "good"})

    made.ledger.bind_store({}, reload=True, requeued=read_requeued_items(logs))
    if has_pending_batch:
        made.ledger.begin(
            {log: LogRange(LOG_START, end) for log, end in logs.durable_offsets().items()}
        )
    made.ledger.close()
    again = harness(logs, MemoryStore(rejects=named(*rejected)))
    again.loader.load_available()

    assert (sorted(again.names()), again.quarantined()) == (before, [])


def test_item_of_replaced_files_is_stored_where_another_one_was_rejected(
    harness: MakeHarness,
) -> None:
    made = harness(ListedLogs(worker_0=[events("a", "b"), imported("c")[0]]))
    elsewhere = [
        RequeuedItem("worker-0", LogOffset(1, 0), 0, NOON - 1),
        RequeuedItem("worker-0", LogOffset(1, 0), 2, NOON),
        RequeuedItem("worker-0", LogOffset(1, 1), 0, NOON + 60_000),
        RequeuedItem("worker-1", LogOffset(1, 0), 0, NOON),
    ]
    made.ledger.bind_store({}, reload=True, requeued=elsewhere)
    made.loader.load_available()
    assert made.names() == ["a", "b", "c"]


def test_load_until_stops_at_the_offsets(harness: MakeHarness) -> None:
    made = harness(ListedLogs(worker_0=[events("a"), events("b")]))
    made.loader.load_until({"worker-0": LogOffset(1, 1)})
    assert made.names() == ["a"]
    made.loader.load_until(made.logs.durable_offsets())
    assert made.names() == ["a", "b"]


def test_logs_are_merged_by_receipt(harness: MakeHarness) -> None:
    made = harness(
        ListedLogs(
            worker_0=[events("second", at_ms=NOON + 2), events("fourth", at_ms=NOON + 4)],
            worker_1=[events("first", at_ms=NOON + 1), events("third", at_ms=NOON + 3)],
        )
    )
    made.loader.load_available()
    assert made.names() == ["first", "second", "third", "fourth"]


@pytest.mark.parametrize(
    "limits", [BatchLimits(max_rows=2), BatchLimits(max_bytes=100)], ids=["rows", "bytes"]
)
def test_batches_are_bounded_and_all_is_stored(harness: MakeHarness, limits: BatchLimits) -> None:
    store = RecordingStore()
    logs = ListedLogs(worker_0=[events(f"event {n}") for n in range(7)], worker_1=[events("x")])
    made = harness(logs, store, limits=limits)
    assert made.loader.load_available() == 8
    assert len(store.tokens) == 4
    assert len(set(store.tokens)) == 4
    assert sorted(made.names()) == [*(f"event {n}" for n in range(7)), "x"]


def test_record_over_the_batch_limits_is_its_own_batch(harness: MakeHarness) -> None:
    store = RecordingStore()
    logs = ListedLogs(worker_0=[events(*"abcde"), events("f")])
    made = harness(logs, store, limits=BatchLimits(max_rows=2))
    made.loader.load_available()
    assert made.names() == list("abcdef")
    assert len(store.tokens) == 2


def test_loaded_segments_may_be_removed(harness: MakeHarness) -> None:
    made = harness(ListedLogs(worker_0=[events("a")]))
    made.loader.load_available()
    assert made.logs.removed == [("worker-0", LogOffset(1, 1))]


REPEATS = [
    pytest.param([events("first", event_id="x"), events("second", event_id="x")], id="same-batch"),
    pytest.param([events("first", "second", event_id="x")], id="same-record"),
    pytest.param(
        [events("first", event_id="x"), events("second", at_ms=NOON + 7 * DAY - 1, event_id="x")],
        id="just-within-seven-days",
    ),
]


@pytest.mark.parametrize("max_rows", [1, 100], ids=["batch-by-batch", "one-batch"])
@pytest.mark.parametrize("records", REPEATS)
def test_repeated_event_id_is_not_stored_and_the_first_stays(
    harness: MakeHarness, records: list[bytes], max_rows: int
) -> None:
    made = harness(ListedLogs(worker_0=records), limits=BatchLimits(max_rows=max_rows))
    made.loader.load_available()
    assert made.names() == ["first"]
    repeated = made.metric('headrace_items_total{outcome="repeated",stream="events"}')
    assert repeated == 1


@pytest.mark.parametrize("max_rows", [1, 100], ids=["batch-by-batch", "one-batch"])
def test_expired_item_is_not_stored_and_its_event_id_is_remembered(
    harness: MakeHarness, max_rows: int
) -> None:
    records = [
        events("old", event_id="x", expired=(0,)),
        events("new", event_id="x"),
        events("old again", event_id="x", expired=(0,)),
        events("kept", "without an id", expired=(1,)),
    ]
    made = harness(ListedLogs(worker_0=records), limits=BatchLimits(max_rows=max_rows))
    made.loader.load_available()
    assert made.names() == ["kept"]
    counted = [
        made.metric(f'headrace_items_total{{outcome="{outcome}",stream="events"}}')
        for outcome in ("accepted", "repeated", "expired")
    ]
    assert counted == [1, 2, 2]


def test_of_two_logs_the_item_received_first_stays(harness: MakeHarness) -> None:
    made = harness(
        ListedLogs(
            worker_0=[events("second", at_ms=NOON + 1, event_id="x")],
            worker_1=[events("first", at_ms=NOON, event_id="x")],
        )
    )
    made.loader.load_available()
    assert made.names() == ["first"]


OTHERS = [
    pytest.param(events("second", at_ms=NOON + 7 * DAY, event_id="x"), id="after-seven-days"),
    pytest.param(events("second", event_id="y"), id="another-id"),
    pytest.param(events("second", event_id="x", website="web_b"), id="another-website"),
    pytest.param(events("second"), id="no-id"),
]


@pytest.mark.parametrize("max_rows", [1, 100], ids=["batch-by-batch", "one-batch"])
@pytest.mark.parametrize("other", OTHERS)
def test_unique_item_is_stored(harness: MakeHarness, other: bytes, max_rows: int) -> None:
    logs = ListedLogs(worker_0=[events("first", event_id="x"), other])
    made = harness(logs, limits=BatchLimits(max_rows=max_rows))
    made.loader.load_available()
    assert made.names() == ["first", "second"]


def test_event_ids_of_the_event_kinds_are_independent(harness: MakeHarness) -> None:
    logs = ListedLogs(worker_0=[events("a", event_id="x"), vital("x"), error("x"), vital("x")])
    made = harness(logs)
    assert made.loader.load_available() == 3


@pytest.mark.parametrize("max_rows", [1, 100], ids=["batch-by-batch", "one-batch"])
@pytest.mark.parametrize("has_api_key", [True, False], ids=["key first", "keyless first"])
def test_event_ids_with_and_without_a_key_are_independent(
    harness: MakeHarness, max_rows: int, has_api_key: bool
) -> None:
    records = [
        record
        for with_key in (has_api_key, not has_api_key)
        for record in (
            events("a", event_id="x", has_api_key=with_key),
            vital("x", has_api_key=with_key),
            error("x", has_api_key=with_key),
        )
    ]
    made = harness(ListedLogs(worker_0=records * 2), limits=BatchLimits(max_rows=max_rows))
    assert made.loader.load_available() == 6
    assert {table: len(rows) for table, rows in made.store.rows.items()} == {
        "events": 2,
        "performance": 2,
        "errors": 2,
    }


@pytest.mark.parametrize("max_rows", [1, 100], ids=["batch-by-batch", "one-batch"])
@pytest.mark.parametrize("has_api_key", [True, False], ids=["with a key", "without a key"])
def test_event_id_of_a_record_of_an_older_version_is_known_with_and_without_a_key(
    harness: MakeHarness, max_rows: int, has_api_key: bool
) -> None:
    """Such a record does not say whether its request had a key."""
    older = events("older", event_id="x", has_api_key=None)
    logs = ListedLogs(
        worker_0=[older, older, events("newer", event_id="x", has_api_key=has_api_key)]
    )
    made = harness(logs, limits=BatchLimits(max_rows=max_rows))
    made.loader.load_available()
    assert made.names() == ["older"]


def test_dropped_record_of_an_older_version_claims_no_event_id_without_a_key(
    harness: MakeHarness,
) -> None:
    logs = ListedLogs(
        worker_0=[
            events("keyed", event_id="x"),
            events("older", event_id="x", has_api_key=None),
            events("keyless", event_id="x", has_api_key=False),
        ]
    )
    made = harness(logs)
    made.loader.load_available()
    assert made.names() == ["keyed", "keyless"]


@pytest.mark.parametrize(
    ("later_ms", "expected"),
    [(DAY - 1, ["first"]), (DAY, ["first", "second", "third"])],
    ids=["within-a-day", "after-a-day"],
)
def test_record_with_a_repeated_idempotency_key_is_dropped_completely(
    harness: MakeHarness, later_ms: int, expected: list[str]
) -> None:
    later = events("second", "third", at_ms=NOON + later_ms, key=b"k" * 32)
    made = harness(ListedLogs(worker_0=[events("first", key=b"k" * 32), later]))
    made.loader.load_available()
    assert made.names() == expected


def test_dropped_record_does_not_claim_its_event_ids(harness: MakeHarness) -> None:
    logs = ListedLogs(
        worker_0=[
            events("first", key=b"k"),
            events("dropped", event_id="x", key=b"k"),
            events("third", event_id="x"),
        ]
    )
    made = harness(logs)
    made.loader.load_available()
    assert made.names() == ["first", "third"]


def test_bots_are_stored_as_bots(harness: MakeHarness) -> None:
    visitor = type(UNKNOWN_VISITOR)(browser_name="Chrome", is_bot=True)
    record = EventRecord(NOON, visitor, [Event("web_a", NOON, "a")])
    made = harness(ListedLogs(worker_0=[encode_record(record)]))
    made.loader.load_available()
    assert [row["is_bot"] for row in made.store.rows["events"]] == [True]


@pytest.mark.parametrize("unavailable", [[1], [2], [3], [1, 2, 4]], ids=str)
def test_unavailable_store_is_reported_and_nothing_is_lost_or_duplicated(
    harness: MakeHarness, unavailable: list[int]
) -> None:
    store = RecordingStore(unavailable=unavailable)
    made = harness(ListedLogs(worker_0=[events("a"), vital(), error(), events("b")]), store)
    for _ in unavailable:
        with pytest.raises(StoreUnavailable, match="The engine is away"):
            made.loader.load_available()
    made.loader.load_available()
    assert {table: len(rows) for table, rows in store.rows.items()} == {
        "events": 2,
        "performance": 1,
        "errors": 1,
    }
    assert made.metric("headrace_load_failures_total") == len(unavailable)


def test_pending_batch_is_retried_over_the_same_ranges(harness: MakeHarness) -> None:
    store = RecordingStore(unavailable=[1])
    logs = ListedLogs(worker_0=[events("a")])
    made = harness(logs, store)
    with pytest.raises(StoreUnavailable):
        made.loader.load_available()
    logs.logs["worker-0"].append(events("b"))
    made.loader.load_available()
    first, again, second = store.tokens
    assert first == again != second
    assert made.names() == ["a", "b"]


class FailingLogs(ListedLogs):
    """Logs on a disk of which a part can fail."""

    failing: str | None = None

    def read(self, log: str, *, after: LogOffset, until: LogOffset, max_bytes: int) -> LogChunk:
        if log == self.failing:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(log, after=after, until=until, max_bytes=max_bytes)

    def unreadable(self) -> Sequence[str]:
        return () if self.failing is None else (self.failing,)


def test_pending_batch_that_cannot_be_read_names_the_log_and_is_stored_once_it_can(
    harness: MakeHarness,
) -> None:
    logs = FailingLogs(worker_0=[events("a")], worker_1=[events("b")])
    made = harness(logs, RecordingStore(unavailable=[1]))
    with pytest.raises(StoreUnavailable):
        made.loader.load_available()
    logs.failing = "worker-1"
    with pytest.raises(StoreUnavailable) as failure:
        made.loader.load_available()
    assert str(failure.value) == (
        "a batch that was begun cannot be read again, in the log worker-1: input/output error"
    )
    logs.failing = None
    made.loader.load_available()
    assert made.names() == ["a", "b"]


def test_new_batch_that_cannot_be_read_names_the_log_and_is_stored_once_it_can(
    harness: MakeHarness,
) -> None:
    logs = FailingLogs(worker_0=[events("a")], worker_1=[events("b")])
    logs.failing = "worker-1"
    made = harness(logs)
    with pytest.raises(StoreUnavailable) as failure:
        made.loader.load_available()
    assert str(failure.value) == "the log worker-1 cannot be read: input/output error"
    logs.failing = None
    made.loader.load_available()
    assert made.names() == ["a", "b"]


def test_tokens_of_another_ledger_differ(tmp_path: Path) -> None:
    tokens: list[str] = []
    for name in ("one", "two"):
        store = RecordingStore()
        with closing(SqliteLedger.open(tmp_path / name)) as ledger:
            loader = Loader(
                log=ListedLogs(worker_0=[events("a")]),
                ledger=ledger,
                store=store,
                quarantine=FileQuarantine(tmp_path / "quarantine"),
                metrics=Metrics(),
                clock=FixedClock(NOON),
            )
            loader.load_available()
        tokens += store.tokens
    assert tokens[0] != tokens[1]


def _exhaust_memory(_batch: object) -> Any:
    raise MemoryError


@pytest.mark.parametrize("is_pending", [False, True], ids=["new batch", "repeated batch"])
def test_lack_of_memory_is_no_fault_of_a_row(
    harness: MakeHarness, monkeypatch: pytest.MonkeyPatch, is_pending: bool
) -> None:
    made = harness(ListedLogs(worker_0=[events("a", "b")]))
    if is_pending:
        made.ledger.begin({"worker-0": LogRange(LOG_START, LogOffset(1, 1))})
    with monkeypatch.context() as lacking:
        exhausted: TableMapping[Any] = TableMapping(EVENTS, _exhaust_memory)
        lacking.setitem(cast("dict[EventKind, Any]", TABLE_MAPPINGS), EventKind.EVENTS, exhausted)
        with pytest.raises(MemoryError):
            made.loader.load_available()
    made.loader.load_available()
    assert made.names() == ["a", "b"]
    assert made.quarantined() == []


@pytest.mark.parametrize("bad", [["0"], ["9"], ["4"], ["3", "7"], list("0123456789")], ids=str)
def test_rejected_rows_are_quarantined_and_the_rest_is_stored(
    harness: MakeHarness, bad: list[str]
) -> None:
    records = [events(*"012"), events(*"3456"), events(*"789")]
    made = harness(ListedLogs(worker_0=records), MemoryStore(rejects=named(*bad)))
    assert made.loader.load_available() == 10 - len(bad)
    assert made.names() == [name for name in "0123456789" if name not in bad]
    assert [entry["item"]["name"] for entry in made.quarantined()] == bad
    counted = made.metric('headrace_items_total{outcome="quarantined",stream="events"}')
    assert counted == len(bad)


def test_quarantine_entry_has_offset_reason_and_item(harness: MakeHarness) -> None:
    item = Event("web_a", NOON, "bad", session_id="sess_1", properties=b'{"plan":"pro"}')
    record = EventRecord(NOON + 5, UNKNOWN_VISITOR, [Event("web_a", NOON, "good"), item])
    logs = ListedLogs(worker_0=[events("a"), encode_record(record)])
    made = harness(logs, MemoryStore(rejects=named("bad")))
    made.loader.load_available()
    (entry,) = made.quarantined()
    assert entry == {
        "log": "worker-0",
        "position": {"segment": 1, "offset": 1},
        "reason": "BatchRejected: a row is rejected",
        "stream": "events",
        "index": 1,
        "item": {
            "website_id": "web_a",
            "time_ms": NOON,
            "name": "bad",
            "anonymous_id": "",
            "session_id": "sess_1",
            "namespace": "",
            "source": "",
            "event_id": "",
            "path": "",
            "url": "",
            "properties": {"plan": "pro"},
            "promoted": None,
            "visitor": {
                "country": "",
                "region": "",
                "city": "",
                "browser_name": "",
                "browser_version": "",
                "os_name": "",
                "os_version": "",
                "device_type": "",
                "is_bot": False,
            },
            "profile_id": "",
            "received_ms": NOON + 5,
        },
        "digest": "4ca6da150fbedfd2",
    }


def test_record_that_cannot_be_decoded_is_quarantined(harness: MakeHarness) -> None:
    made = harness(ListedLogs(worker_0=[events("a"), b"no record", events("b")]))
    made.loader.load_available()
    (entry,) = made.quarantined()
    assert (entry["position"], entry["payload"]) == ({"segment": 1, "offset": 1}, "bm8gcmVjb3Jk")
    assert made.names() == ["a", "b"]


def test_record_with_other_text_than_utf_8_is_quarantined(harness: MakeHarness) -> None:
    payload = events("a").replace(b"web_a", b"web_\xff")
    made = harness(ListedLogs(worker_0=[events("a"), payload, events("b")]))
    made.loader.load_available()
    assert len(made.quarantined()) == 1
    assert made.names() == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"received_ms": -1}, "received_ms is no time in milliseconds"),
        ({"received_ms": 1 << 48}, "received_ms is no time in milliseconds"),
        ({"row_id": "ab"}, "row_id must have 16 bytes"),
    ],
    ids=["negative", "late", "short id"],
)
def test_an_edited_entry_that_no_row_id_can_be_made_of_is_not_requeued(
    changes: dict[str, Any], reason: str
) -> None:
    """The log would have a record that ends every load."""
    item = {"website_id": "web_a", "time_ms": NOON, "name": "a", "received_ms": NOON, **changes}
    entry = QuarantineEntry("worker-0", LogOffset(1, 0), "too large", "events", 0, item)
    with pytest.raises(ValueError, match=reason):
        to_log_record(entry)


@pytest.mark.parametrize("position", [LogOffset(1, 1 << 63), LogOffset(-1, 0)])
def test_an_entry_whose_position_was_edited_so_that_no_log_has_it_is_not_requeued(
    position: LogOffset,
) -> None:
    item = {"website_id": "web_a", "time_ms": NOON, "name": "a", "received_ms": NOON}
    entry = QuarantineEntry("worker-0", position, "too large", "events", 0, item)
    with pytest.raises(ValueError, match="its position is none in a log"):
        to_log_record(entry)


def test_entry_at_the_offset_of_an_entry_of_replaced_files_is_another_one(
    harness: MakeHarness, tmp_path: Path
) -> None:
    for name in ("first", "second", "second"):  # the last one as after a crash
        logs = ListedLogs(worker_0=[events(name)])
        made = harness(logs, MemoryStore(rejects=named(name)))
        made.loader.load_available()
        made.ledger.close()
        (tmp_path / "ledger.sqlite").unlink()
    assert [entry["item"]["name"] for entry in made.quarantined()] == ["second", "first"]


def test_row_out_of_column_range_is_quarantined(harness: MakeHarness) -> None:
    record = EventRecord(NOON, UNKNOWN_VISITOR, [Event("web_a", 2**63, "too late")])
    made = harness(ListedLogs(worker_0=[encode_record(record), events("b")]))
    made.loader.load_available()
    assert [entry["item"]["name"] for entry in made.quarantined()] == ["too late"]
    assert made.names() == ["b"]


def test_rejected_item_whose_properties_are_not_utf_8_is_quarantined_as_it_is(
    harness: MakeHarness,
) -> None:
    item = Event("web_a", 2**63, "too late", properties=b'{"text":"\xff"}')
    record = EventRecord(NOON, UNKNOWN_VISITOR, [item])
    made = harness(ListedLogs(worker_0=[encode_record(record), events("b")]))
    made.loader.load_available()
    (stored,) = FileQuarantine(made.quarantine).decodable_entries()
    assert decode_record(to_log_record(stored.entry)).items == [item]
    assert made.names() == ["b"]


ADJACENT = {
    "event id": [events("a", event_id="1"), events("again", event_id="1")],
    "idempotency key": [events("a", key=b"k"), events("again", key=b"k")],
}


@pytest.mark.parametrize("records", ADJACENT.values(), ids=ADJACENT)
def test_duplicate_in_a_prefetched_batch_is_dropped(
    harness: MakeHarness, records: list[bytes]
) -> None:
    logs = ListedLogs(worker_0=[*records, events("b")])
    made = harness(logs, limits=BatchLimits(max_rows=1))
    assert made.loader.load_available() == 2
    assert made.names() == ["a", "b"]
    assert made.metric('headrace_items_total{outcome="repeated",stream="events"}') == 1


class FlakyStore(RecordingStore):
    """Rejects the first batch twice and is unavailable later; otherwise it accepts everything."""

    def insert(
        self,
        table: Table,
        arrow_stream: bytes,
        *,
        token: str,
        shards: int | None = None,
        first_attempt: bool = False,
    ) -> None:
        if len(self.tokens) < 2:
            self.tokens.append(token)
            raise BatchRejected("A row is refused.")
        super().insert(table, arrow_stream, token=token, shards=shards, first_attempt=first_attempt)


def test_batch_recorded_as_rejected_is_never_retried_in_full(harness: MakeHarness) -> None:
    store = FlakyStore(unavailable=[4])
    made = harness(ListedLogs(worker_0=[events(*"abcd")]), store)
    with pytest.raises(StoreUnavailable):
        made.loader.load_available()
    made.loader.load_available()
    assert made.names() == list("abcd")
    full, full_again, first_half, second_half, second_half_again = store.tokens
    assert (full, second_half) == (full_again, second_half_again)
    assert len({full, first_half, second_half}) == 3


class GrowingStore(RecordingStore):
    """A store that gets a shard; it records the number of shards of each insert."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.current_shards = 2
        self.used_shards: list[int | None] = []

    def shards(self) -> int | None:
        return self.current_shards

    def insert(
        self,
        table: Table,
        arrow_stream: bytes,
        *,
        token: str,
        shards: int | None = None,
        first_attempt: bool = False,
    ) -> None:
        self.used_shards.append(shards)
        super().insert(table, arrow_stream, token=token, shards=shards, first_attempt=first_attempt)


def test_a_pending_batch_keeps_to_the_shards_that_it_began_with(harness: MakeHarness) -> None:
    store = GrowingStore(unavailable=[2])
    logs = ListedLogs(worker_0=[events("a"), events("b"), events("c")])
    made = harness(logs, store, limits=BatchLimits(max_rows=1))
    with pytest.raises(StoreUnavailable):
        made.loader.load_available()
    store.current_shards = 3
    made.ledger.close()
    again = harness(logs, store, limits=BatchLimits(max_rows=1))
    again.loader.load_available()
    assert (again.names(), store.used_shards) == (["a", "b", "c"], [2, 2, 2, 3])


def test_stored_items_are_counted_as_accepted(harness: MakeHarness) -> None:
    made = harness(ListedLogs(worker_0=[events("a", "b"), vital()]))
    made.loader.load_available()
    assert made.metric('headrace_items_total{outcome="accepted",stream="events"}') == 2
    assert made.metric('headrace_items_total{outcome="accepted",stream="vitals"}') == 1
    assert made.metric("headrace_load_seconds_count") == 1


def test_backlog_metric_rises_while_the_store_is_unavailable(harness: MakeHarness) -> None:
    record = events("a")
    made = harness(ListedLogs(worker_0=[record]), RecordingStore(unavailable=[1]))
    with pytest.raises(StoreUnavailable):
        made.loader.load_available()
    assert made.metric("headrace_log_backlog_bytes") == len(record)
    made.loader.load_available()
    assert made.metric("headrace_log_backlog_bytes") == 0


def test_log_whose_files_were_replaced_is_read_from_its_start(harness: MakeHarness) -> None:
    made = harness(ListedLogs(worker_0=[events("a")]))
    loaded = LogRange(LOG_START, LogOffset(made.logs.segment + 1, 1))
    made.ledger.commit(
        made.ledger.begin({"worker-0": loaded}).batch, new_digests={}, forget_before_ms=0
    )
    assert made.loader.load_available() == 1
    assert made.ledger.stored_offsets() == made.logs.durable_offsets()


def test_end_from_before_a_power_cut_stores_nothing_twice(harness: MakeHarness) -> None:
    made = harness(ListedLogs(worker_0=[events("a"), events("b")]))
    made.loader.load_available()
    stored = LogOffset(made.logs.segment + 1, 1)
    batch = made.ledger.begin({"worker-0": LogRange(LOG_START, stored)}).batch
    made.ledger.commit(batch, new_digests={}, forget_before_ms=0)
    made.logs.newest = stored.segment
    assert made.loader.load_available() == 0
    assert made.names() == ["a", "b"]
    assert made.ledger.stored_offsets() == {"worker-0": stored}
