"""Brings what is durable in the logs into the store, each item exactly once.

A batch is begun in the ledger with the exact ranges it is made of and committed when all of it is
stored. After a crash, or a failure anywhere, the batch under way is done again first: over the
same ranges, against the same memory of seen items, with the same tokens. The store leaves out what
it has already.
"""

from collections.abc import Mapping, Sequence

from millrace.base.clock import MILLISECONDS_PER_DAY, Clock
from millrace.base.errors import Unavailable
from millrace.base.telemetry import Metrics, get_logger
from millrace.ingest import set_aside
from millrace.ingest.agree import sift_with_others
from millrace.ingest.batch import collect
from millrace.ingest.gather import BatchBounds, GatheredRecord, Gathering, gather
from millrace.ingest.rows import SHAPES
from millrace.ingest.sift import Sifting, sift
from millrace.ingest.store_parts import PartStorer
from millrace.model.event import Stream
from millrace.ports.claims import Claims
from millrace.ports.ledger import Intent, Ledger, LogRange
from millrace.ports.log import LOG_START, LogPosition, LogReader
from millrace.ports.quarantine import Quarantine, Quarantined
from millrace.ports.store import StoreWriter

_BOUNDS = BatchBounds()
_FORGET_LATE_MS = MILLISECONDS_PER_DAY
"""A log that is behind the others may still hold a repeat of what expired for them."""


class Loader:
    """Loads; blocking, for one thread of the engine process.

    Whatever it raises, nothing is lost and nothing stored twice: call it again after a pause.
    """

    def __init__(
        self,
        *,
        log: LogReader,
        ledger: Ledger,
        store: StoreWriter,
        quarantine: Quarantine,
        metrics: Metrics,
        clock: Clock,
        claims: Claims | None = None,
        bounds: BatchBounds = _BOUNDS,
    ) -> None:
        self._log = log
        self._ledger = ledger
        self._store = store
        self._quarantine = quarantine
        self._metrics = metrics
        self._clock = clock
        self._claims = claims
        self._bounds = bounds

    def load_available(self) -> int:
        """Load everything that is durable at the call; return how many rows were stored."""
        return self._load(self._log.durable_ends())

    def load_until(self, ends: Mapping[str, LogPosition]) -> None:
        """Return when everything before these places is stored."""
        self._load(ends)

    def _load(self, ends: Mapping[str, LogPosition]) -> int:
        rows = self._finish_begun_batch()
        ranges = self._ranges_to_load(ends)
        while ranges:
            self._show_backlog(ranges)
            gathering = gather(self._log, ranges, self._bounds)
            intent = self._ledger.begin(gathering.ranges)
            rows += self._attempt(intent, gathering)
            ranges = self._ranges_to_load(ends)
        self._show_backlog(ranges)
        return rows

    def _finish_begun_batch(self) -> int:
        intent = self._ledger.intent()
        if intent is None:
            return 0
        return self._attempt(intent, gather(self._log, intent.ranges))

    def _ranges_to_load(self, ends: Mapping[str, LogPosition]) -> dict[str, LogRange]:
        positions = self._ledger.positions()
        ranges = {log: LogRange(_start(log, positions, end), end) for log, end in ends.items()}
        return {log: wanted for log, wanted in ranges.items() if wanted.start < wanted.end}

    def _show_backlog(self, ranges: Mapping[str, LogRange]) -> None:
        backlog = sum(
            self._log.bytes_between(log, after=wanted.start, until=wanted.end)
            for log, wanted in ranges.items()
        )
        self._metrics.set("millrace_log_backlog_bytes", backlog)

    def _attempt(self, intent: Intent, gathering: Gathering) -> int:
        try:
            return self._store_batch(intent, gathering)
        except BaseException:
            self._metrics.count("millrace_load_failures_total")
            raise

    def _store_batch(self, intent: Intent, gathering: Gathering) -> int:
        started_s = self._clock.monotonic_s()
        records, identity = gathering.records, self._ledger.identity()
        sifting = self._sift(intent, records)
        batches = collect(records, sifting.kept, identity=identity)
        parts = PartStorer(self._store, self._ledger, token=f"{identity}-{intent.batch}")
        refused = {stream: parts.store(SHAPES[stream], batches[stream]) for stream in Stream}
        entries = list(set_aside.undecodable(records))
        for stream, rows in refused.items():
            entries += set_aside.refused(stream, batches[stream], records, rows)
        for entry in entries:
            self._quarantine.put(entry)
        self._commit(intent, records, sifting)
        self._metrics.observe("millrace_load_seconds", self._clock.monotonic_s() - started_s)
        self._count_outcomes(sifting, entries)
        return sum(
            self._count_stored(stream, len(batch.items) - len(refused[stream]))
            for stream, batch in batches.items()
        )

    def _sift(self, intent: Intent, records: Sequence[GatheredRecord]) -> Sifting:
        if self._claims is None:
            return sift(records, self._ledger.seen)
        return sift_with_others(records, self._ledger.seen, claims=self._claims, batch=intent.batch)

    def _commit(self, intent: Intent, records: Sequence[GatheredRecord], sifting: Sifting) -> None:
        receipts = (record.received_ms for record in records if record.content is not None)
        oldest_ms = min(receipts, default=0)
        forget_before_ms = min(oldest_ms, self._clock.now_ms()) - _FORGET_LATE_MS
        self._ledger.commit(intent.batch, seen=sifting.seen, forget_before_ms=forget_before_ms)
        if self._claims is not None:
            _settle(self._claims, intent)
        for log, loaded in intent.ranges.items():
            try:
                self._log.remove_before(log, loaded.end)
            except OSError as error:  # the next batch tries again
                get_logger().warning("log_not_removed", log=log, reason=error.strerror)

    def _count_outcomes(self, sifting: Sifting, entries: Sequence[Quarantined]) -> None:
        for stream, count in sifting.repeated.items():
            self._metrics.count("millrace_items_total", count, stream.value, "repeated")
        for entry in entries:
            self._metrics.count("millrace_items_total", 1, entry.stream or "unknown", "quarantined")
        if entries:
            self._metrics.count("millrace_load_failures_total")
            get_logger().error("items_quarantined", items=len(entries))

    def _count_stored(self, stream: Stream, rows: int) -> int:
        if rows:
            self._metrics.count("millrace_items_total", rows, stream.value, "accepted")
        return rows


def _settle(claims: Claims, intent: Intent) -> None:
    try:
        claims.settle(intent.batch)
    except Unavailable as error:  # the next batch's claims tell it too
        get_logger().warning("batch_not_settled", reason=str(error))


def _start(log: str, positions: Mapping[str, LogPosition], end: LogPosition) -> LogPosition:
    position = positions.get(log, LOG_START)
    if position.segment > end.segment > 0:
        get_logger().warning("log_replaced", log=log)  # numbers never fall: these are new files
        return LOG_START
    return position
