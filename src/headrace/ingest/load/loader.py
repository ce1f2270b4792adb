"""Brings what is durable in the logs into the store, each item exactly once.

A batch is begun in the ledger with the exact ranges it is made of and committed when all of it is
stored. After a crash, or a failure anywhere, the batch under way is done again first: over the
same ranges, against the same memory of seen items, with the same tokens. The store leaves out what
it has already.

While the store takes a batch, the next one is made ready. It is only read ahead: it begins when the
one before it is committed, and it is told what that one adds to the memory of seen items. Nothing
is read ahead of a batch that other machines must be asked about: what they have of it decides.
"""

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from headrace.base.clock import MILLISECONDS_PER_DAY, Clock
from headrace.base.errors import Unavailable
from headrace.base.telemetry import Metrics, get_logger
from headrace.ingest.load.batch_reader import BatchBounds, GatheredRecord, Gathering
from headrace.ingest.load.bisect import part_token
from headrace.ingest.load.build_batch import ReadyBatch, prepare
from headrace.ingest.load.columns import SHAPES
from headrace.ingest.load.deduplicate import Sifting, sift, sift_with_others
from headrace.ingest.load.fallback import Outcome, store_by_parts, stored_whole
from headrace.ports.dedup_claims import Claims
from headrace.ports.event_log import LOG_START, LogPosition, LogReader
from headrace.ports.ledger import Intent, Ledger, LogRange
from headrace.ports.quarantine import Quarantine
from headrace.ports.store import RejectedBatch, StoreWriter

_BOUNDS = BatchBounds()
_FORGET_LATE_MS = MILLISECONDS_PER_DAY
"""A log that is behind the others may still hold a repeat of what expired for them."""

_Places = Mapping[str, LogPosition]


class Loader:
    """Loads; blocking, for one thread of the engine process.

    `executor` runs one insert at a time, and none any more when a method has returned. Whatever it
    raises, nothing is lost and nothing stored twice: call it again after a pause.
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
        executor: Executor | None = None,
    ) -> None:
        self._log = log
        self._ledger = ledger
        self._store = store
        self._quarantine = quarantine
        self._metrics = metrics
        self._clock = clock
        self._claims = claims
        self._bounds = bounds
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix="insert")

    def load_available(self) -> int:
        """Load everything that is durable at the call; return how many rows were stored."""
        return self._load(self._log.durable_ends())

    def load_until(self, ends: Mapping[str, LogPosition]) -> None:
        """Return when everything before these places is stored."""
        self._load(ends)

    def _load(self, ends: _Places) -> int:
        rows = self._finish_begun_batch()
        positions = self._ledger.positions()
        batch = self._make_ready(_ranges_to_load(positions, ends), before={})
        while batch is not None:
            positions = {**positions, **{log: one.end for log, one in batch.ranges.items()}}
            with self._observed():
                intent = self._ledger.begin(batch.ranges)
                ranges = _ranges_to_load(positions, ends)
                is_stored, following = False, None
                if self._claims is None or not batch.seen:
                    is_stored, following = self._insert_and_read_ahead(intent, batch, ranges)
                outcome = stored_whole(batch) if is_stored else self._store_by_parts(intent)
                rows += self._commit(intent, outcome, following)
            batch = following or self._make_ready(ranges, before={})
        self._metrics.set("headrace_log_backlog_bytes", 0)
        return rows

    def _finish_begun_batch(self) -> int:
        intent = self._ledger.intent()
        if intent is None:
            return 0
        with self._observed():
            return self._commit(intent, self._store_by_parts(intent), following=None)

    @contextmanager
    def _observed(self) -> Generator[None]:
        started_s = self._clock.monotonic_s()
        try:
            yield
        except BaseException:
            self._metrics.count("headrace_load_failures_total")
            raise
        self._metrics.observe("headrace_load_seconds", self._clock.monotonic_s() - started_s)

    def _make_ready(
        self, ranges: Mapping[str, LogRange], *, before: Mapping[bytes, int]
    ) -> ReadyBatch | None:
        """Make the next batch ready. `before` will be in the memory of seen items by then."""
        if not ranges:
            return None

        def find_seen(digests: Sequence[bytes]) -> Mapping[bytes, int]:
            just_before = {digest: before[digest] for digest in digests if digest in before}
            return {**self._ledger.seen(digests), **just_before}

        self._show_backlog(ranges)
        gathering = Gathering(self._log, ranges, self._bounds)
        return prepare(gathering, identity=self._ledger.identity(), find_seen=find_seen)

    def _insert_and_read_ahead(
        self, intent: Intent, batch: ReadyBatch, ranges: Mapping[str, LogRange]
    ) -> tuple[bool, ReadyBatch | None]:
        token = self._token(intent)
        if not ranges:
            return self._insert(batch, token), None
        inserting = self._executor.submit(self._insert, batch, token)
        try:
            following = self._make_ready(ranges, before=batch.seen)
        finally:
            inserting.exception()  # waits: nothing may run any more when a load ends
        return inserting.result(), following

    def _insert(self, batch: ReadyBatch, token: str) -> bool:
        """Store all rows of a batch that was just begun; tell whether they were taken."""
        for ready in batch.streams:
            if ready.arrow is None:
                return False
            table = SHAPES[ready.stream].table
            try:
                part = part_token(token, table, 0, ready.rows)
                self._store.insert(table, ready.arrow, token=part, is_new=True)
            except RejectedBatch:
                return False
        return True

    def _store_by_parts(self, intent: Intent) -> Outcome:
        records = list(Gathering(self._log, intent.ranges))
        return store_by_parts(
            records,
            self._sift(intent, records),
            store=self._store,
            ledger=self._ledger,
            token=self._token(intent),
        )

    def _sift(self, intent: Intent, records: Sequence[GatheredRecord]) -> Sifting:
        if self._claims is None:
            return sift(records, self._ledger.seen)
        return sift_with_others(records, self._ledger.seen, claims=self._claims, batch=intent.batch)

    def _token(self, intent: Intent) -> str:
        return f"{self._ledger.identity()}-{intent.batch}"

    def _commit(self, intent: Intent, outcome: Outcome, following: ReadyBatch | None) -> int:
        for entry in outcome.set_aside:
            self._quarantine.put(entry)
        self._ledger.commit(
            intent.batch,
            seen=outcome.seen,
            forget_before_ms=self._forget_before_ms(outcome, following),
        )
        if self._claims is not None:
            _settle(self._claims, intent)
        for log, loaded in intent.ranges.items():
            try:
                self._log.remove_before(log, loaded.end)
            except OSError as error:  # the next batch tries again
                get_logger().warning("log_not_removed", log=log, reason=error.strerror)
        self._count(outcome)
        return sum(outcome.rows.values())

    def _forget_before_ms(self, outcome: Outcome, following: ReadyBatch | None) -> int:
        """The batch that is ready was sifted before: it may miss nothing that it has found."""
        moments_ms = [self._clock.now_ms(), outcome.oldest_ms or 0]
        if following is not None and following.oldest_ms is not None:
            moments_ms.append(following.oldest_ms)
        return min(moments_ms) - _FORGET_LATE_MS

    def _count(self, outcome: Outcome) -> None:
        for stream, rows in outcome.rows.items():
            if rows:
                self._metrics.count("headrace_items_total", rows, stream.value, "accepted")
        for stream, items in outcome.repeated.items():
            self._metrics.count("headrace_items_total", items, stream.value, "repeated")
        for entry in outcome.set_aside:
            self._metrics.count("headrace_items_total", 1, entry.stream or "unknown", "quarantined")
        if outcome.set_aside:
            self._metrics.count("headrace_load_failures_total")
            get_logger().error("items_quarantined", items=len(outcome.set_aside))

    def _show_backlog(self, ranges: Mapping[str, LogRange]) -> None:
        backlog = sum(
            self._log.bytes_between(log, after=wanted.start, until=wanted.end)
            for log, wanted in ranges.items()
        )
        self._metrics.set("headrace_log_backlog_bytes", backlog)


def _settle(claims: Claims, intent: Intent) -> None:
    try:
        claims.settle(intent.batch)
    except Unavailable as error:  # the next batch's claims tell it too
        get_logger().warning("batch_not_settled", reason=str(error))


def _ranges_to_load(positions: _Places, ends: _Places) -> dict[str, LogRange]:
    ranges = {log: LogRange(_start(log, positions, end), end) for log, end in ends.items()}
    return {log: wanted for log, wanted in ranges.items() if wanted.start < wanted.end}


def _start(log: str, positions: _Places, end: LogPosition) -> LogPosition:
    position = positions.get(log, LOG_START)
    if position.segment > end.segment > 0:
        get_logger().warning("log_replaced", log=log)  # numbers never fall: these are new files
        return LOG_START
    return position
