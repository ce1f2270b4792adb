"""Loads durable records of the logs into the store, each item exactly once.

The ledger records a batch with its exact ranges when it begins, and commits it when all of it is
stored. After a crash or any failure the pending batch is repeated first: over the same ranges,
against the same known digests, with the same tokens. The store skips the parts it already has.

While the store inserts a batch, the next one is built. It is only read ahead: it begins after the
commit of its predecessor, whose new digests it already takes into account. Nothing is read ahead of
a batch with digests to claim from other machines, because their claims decide on its contents.
"""

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from headrace.base.clock import MILLISECONDS_PER_DAY, Clock
from headrace.base.errors import StoreUnavailable, Unavailable, system_reason
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.formats.digest_set import DigestSet
from headrace.ingest.load.batch_reader import BatchLimits, BatchReader, ReadRecord
from headrace.ingest.load.bisect import part_token
from headrace.ingest.load.build_batch import EncodedBatch, build_batch
from headrace.ingest.load.columns import TABLE_MAPPINGS
from headrace.ingest.load.deduplicate import DedupResult, deduplicate, deduplicate_across_machines
from headrace.ingest.load.fallback import BatchResult, insert_with_bisection, stored_result
from headrace.ports.dedup_claims import DedupClaims
from headrace.ports.event_log import LOG_START, LogOffset, LogReader
from headrace.ports.ledger import Ledger, LogRange, PendingBatch
from headrace.ports.quarantine import Quarantine
from headrace.ports.store import BatchRejected, StoreWriter

_DEFAULT_LIMITS = BatchLimits()
_EXPIRY_GRACE_MS = MILLISECONDS_PER_DAY
"""A log that lags behind the others may still contain a repeat of an expired digest."""

_Offsets = Mapping[str, LogOffset]


class Loader:
    """Loads batches; blocking, for one thread of the engine process.

    `executor` runs one insert at a time, and none after a method returned. After any exception
    nothing is lost and nothing stored twice: call the method again after a pause.
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
        claims: DedupClaims | None = None,
        limits: BatchLimits = _DEFAULT_LIMITS,
        executor: Executor | None = None,
    ) -> None:
        self._log = log
        self._ledger = ledger
        self._store = store
        self._quarantine = quarantine
        self._metrics = metrics
        self._clock = clock
        self._claims = claims
        self._limits = limits
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix="insert")

    def load_available(self) -> int:
        """Load everything that is durable at the call; return the number of stored rows."""
        return self._load(self._log.durable_offsets())

    def load_until(self, ends: Mapping[str, LogOffset]) -> None:
        """Return when everything before these offsets is stored."""
        self._load(ends)

    def _load(self, ends: _Offsets) -> int:
        rows = self._finish_pending_batch()
        stored_offsets = self._ledger.stored_offsets()
        batch = self._read_next(self._ranges_to_load(stored_offsets, ends))
        while batch is not None:
            stored_offsets = {
                **stored_offsets,
                **{log: one.end for log, one in batch.ranges.items()},
            }
            with self._observed():
                pending = self._ledger.begin(
                    batch.ranges, shards=self._store.shards(), imported=batch.imported
                )
                ranges = self._ranges_to_load(stored_offsets, ends)
                is_stored, next_batch = False, None
                if self._claims is None or not batch.new_digests:
                    is_stored, next_batch = self._insert_and_read_ahead(pending, batch, ranges)
                result = stored_result(batch) if is_stored else self._insert_with_bisection(pending)
                rows += self._commit(pending, result, next_batch)
            batch = next_batch or self._read_next(ranges)
        self._metrics.set("headrace_log_backlog_bytes", 0)
        return rows

    def _ranges_to_load(self, stored_offsets: _Offsets, ends: _Offsets) -> dict[str, LogRange]:
        ranges = {
            log: LogRange(self._start_offset(log, stored_offsets, end), end)
            for log, end in ends.items()
        }
        return {log: found for log, found in ranges.items() if found.start < found.end}

    def _start_offset(self, log: str, stored_offsets: _Offsets, end: LogOffset) -> LogOffset:
        """Return the stored offset of a log, or its start where its files are new ones.

        An end before the stored offset does not show that: it may be old after a power cut. The
        names of the files do, because segment numbers never decrease.
        """
        offset = stored_offsets.get(log, LOG_START)
        if end.segment >= offset.segment:
            return offset
        if not 0 < self._log.newest_segment(log) < offset.segment:
            return offset
        get_logger().warning("log_replaced", log=log)
        return LOG_START

    def _finish_pending_batch(self) -> int:
        pending = self._ledger.pending_batch()
        if pending is None:
            return 0
        with self._observed():
            return self._commit(pending, self._insert_with_bisection(pending), next_batch=None)

    @contextmanager
    def _observed(self) -> Generator[None]:
        started_s = self._clock.monotonic_s()
        try:
            yield
        except BaseException:
            self._metrics.count("headrace_load_failures_total")
            raise
        self._metrics.observe("headrace_load_seconds", self._clock.monotonic_s() - started_s)

    def _read_next(
        self, ranges: Mapping[str, LogRange], *, pending_digests: Mapping[bytes, int] | None = None
    ) -> EncodedBatch | None:
        """Build the next batch. `pending_digests` will be known digests when it begins."""
        if not ranges:
            return None

        pending = DigestSet(pending_digests or {})

        def find_known(digests: Sequence[bytes]) -> Mapping[bytes, int]:
            return {**self._ledger.known_digests(digests), **pending.known_among(digests)}

        self._report_backlog(ranges)
        batch_reader = BatchReader(
            self._log, ranges, self._limits, requeued=self._ledger.requeued_items()
        )
        try:
            return build_batch(
                batch_reader, identity=self._ledger.identity(), find_known=find_known
            )
        except OSError as error:  # the next load ends before what cannot be read
            reason = f"the log {self._unreadable(ranges)} cannot be read: {system_reason(error)}"
            raise StoreUnavailable(reason) from error

    def _insert_and_read_ahead(
        self, pending: PendingBatch, batch: EncodedBatch, ranges: Mapping[str, LogRange]
    ) -> tuple[bool, EncodedBatch | None]:
        if not ranges:
            return self._insert(batch, pending), None
        inserting = self._executor.submit(self._insert, batch, pending)
        try:
            next_batch = self._read_next(ranges, pending_digests=batch.new_digests)
        finally:
            inserting.exception()  # waits: no insert may run after a load
        return inserting.result(), next_batch

    def _insert(self, batch: EncodedBatch, pending: PendingBatch) -> bool:
        """Insert all rows of a newly begun batch; return whether the store accepted them."""
        for encoded in batch.tables:
            if encoded.arrow is None:
                return False
            table = TABLE_MAPPINGS[encoded.event_kind].table
            try:
                self._store.insert(
                    table,
                    encoded.arrow,
                    token=part_token(self._token(pending), table, 0, encoded.rows),
                    shards=pending.shards,
                    first_attempt=True,
                )
            except BatchRejected:
                return False
        return True

    def _insert_with_bisection(self, pending: PendingBatch) -> BatchResult:
        records = self._read_again(pending)
        return insert_with_bisection(
            records,
            self._deduplicate(pending, records),
            store=self._store,
            ledger=self._ledger,
            token=self._token(pending),
            shards=pending.shards,
        )

    def _read_again(self, pending: PendingBatch) -> list[ReadRecord]:
        """Read the records of a pending batch.

        A batch without one of its logs would be another one: the store may have a part of it. So
        nothing is loaded until all of them can be read.
        """
        try:
            requeued = self._ledger.requeued_items()
            return list(BatchReader(self._log, pending.ranges, requeued=requeued))
        except OSError as error:
            raise StoreUnavailable(
                "a batch that was begun cannot be read again, in the log "
                f"{self._unreadable(pending.ranges)}: {system_reason(error)}"
            ) from error

    def _unreadable(self, ranges: Mapping[str, LogRange]) -> str:
        """Return the names of the logs of a batch that cannot be read."""
        return ", ".join(log for log in self._log.unreadable() if log in ranges)

    def _deduplicate(self, pending: PendingBatch, records: Sequence[ReadRecord]) -> DedupResult:
        if self._claims is None:
            return deduplicate(records, self._ledger.known_digests)
        return deduplicate_across_machines(
            records, self._ledger.known_digests, claims=self._claims, batch=pending.batch
        )

    def _token(self, pending: PendingBatch) -> str:
        return f"{self._ledger.identity()}-{pending.batch}"

    def _commit(
        self, pending: PendingBatch, result: BatchResult, next_batch: EncodedBatch | None
    ) -> int:
        for entry in result.quarantined:
            self._quarantine.put(entry)
        self._ledger.commit(
            pending.batch,
            new_digests=result.new_digests,
            forget_before_ms=self._forget_before_ms(result, next_batch),
        )
        if self._claims is not None:
            _mark_stored(self._claims, pending)
        for log, loaded in pending.ranges.items():
            try:
                self._log.truncate_before(log, loaded.end)
            except OSError as error:  # the next commit retries
                get_logger().warning("log_not_removed", log=log, reason=error.strerror)
        self._count(result)
        return sum(result.rows.values())

    def _forget_before_ms(self, result: BatchResult, next_batch: EncodedBatch | None) -> int:
        """Return the expiry before which digests may be forgotten, with a grace period.

        The next batch is already deduplicated: the digests that it matched must be kept.
        """
        timestamps_ms = [self._clock.now_ms(), result.oldest_ms or 0]
        if next_batch is not None and next_batch.oldest_ms is not None:
            timestamps_ms.append(next_batch.oldest_ms)
        return min(timestamps_ms) - _EXPIRY_GRACE_MS

    def _count(self, result: BatchResult) -> None:
        for event_kind, rows in result.rows.items():
            if rows:
                self._metrics.count("headrace_items_total", rows, event_kind.value, "accepted")
        for (event_kind, outcome), items in result.dropped.items():
            self._metrics.count("headrace_items_total", items, event_kind.value, outcome)
        for entry in result.quarantined:
            self._metrics.count("headrace_items_total", 1, entry.stream or "unknown", "quarantined")
        if result.quarantined:
            self._metrics.count("headrace_load_failures_total")
            get_logger().error("items_quarantined", items=len(result.quarantined))

    def _report_backlog(self, ranges: Mapping[str, LogRange]) -> None:
        backlog = sum(
            self._log.size_between(log, after=log_range.start, until=log_range.end)
            for log, log_range in ranges.items()
        )
        self._metrics.set("headrace_log_backlog_bytes", backlog)


def _mark_stored(claims: DedupClaims, pending: PendingBatch) -> None:
    try:
        claims.mark_stored(pending.batch)
    except Unavailable as error:  # the next batch's first claim publishes it, too
        get_logger().warning("batch_not_settled", reason=str(error))
