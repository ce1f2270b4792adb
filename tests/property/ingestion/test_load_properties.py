"""A crash at any step of loading neither loses nor duplicates an item."""

import json
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.adapters.memory.store import MemoryStore
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import FixedClock
from headrace.base.metrics import Metrics
from headrace.ingest.load.batch_reader import BatchLimits
from headrace.ingest.load.loader import Loader
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    ErrorEvent,
    ErrorRecord,
    Event,
    EventRecord,
    Vital,
    VitalRecord,
    encode_record,
)
from testing.event_logs import QuickDisk, append, reader_of
from testing.examples import examples

T = TypeVar("T")

NOON = 1_700_000_000_000
MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - only the process ends in these tests
METRICS = Metrics()
CLOCK = FixedClock(NOON)


class CrashError(Exception):
    """The process ends here."""


class Steps:
    """Counts the calls that the loader makes, and simulates a crash at one of them."""

    def __init__(self, crash_at: int) -> None:
        self._left = crash_at

    def take(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise CrashError


class Interrupted:
    """Forwards every call; the process may crash directly before and after it."""

    def __init__(self, inner: object, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._steps.take()
            result = getattr(self._inner, name)(*arguments, **named)
            self._steps.take()
            return result

        return call


class AtOnce(Executor):
    """Runs an insert before the next batch is read."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()
        _run(future, lambda: fn(*args, **named))
        return future


class AtLast(Executor):
    """Runs an insert after the next batch is read, when the caller fetches the result."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        return _Later(lambda: fn(*args, **named))


class _Later(Future[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__()
        self._work = work

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if not self.done():
            _run(self, self._work)
        return super().exception(timeout)


def _run(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except Exception as error:  # noqa: BLE001 - the caller of `result` gets it
        future.set_exception(error)


ORDERS: Mapping[str, Callable[[], Executor]] = {
    "insert, then read ahead": AtOnce,
    "read ahead, then insert": AtLast,
    "both at once": lambda: ThreadPoolExecutor(1),
}


class World:
    """The state that outlives a process: the logs, the ledger's file, the store, the quarantine."""

    def __init__(self, folder: Path, order: str) -> None:
        self.folder = folder
        self.order = order
        self.store = MemoryStore(rejects=lambda row: "bad" in row.get("event_name", ""))

    def append(self, **logs: Sequence[bytes]) -> None:
        for name, payloads in logs.items():
            append(
                self.folder / "log", *payloads, name=name, segment_bytes=150, file_ops=QuickDisk()
            )

    def load(self, crash_at: int) -> None:
        """Run a process that loads everything; raises `CrashError` at a step."""
        steps = Steps(crash_at)
        reader = reader_of(self.folder / "log", file_ops=QuickDisk())
        ledger = SqliteLedger.open(self.folder / "ledger.sqlite", run_ids=2)
        quarantine = FileQuarantine(self.folder / "quarantine")
        with closing(reader), closing(ledger), ORDERS[self.order]() as executor:
            Loader(
                log=interrupted(reader, steps),
                ledger=interrupted(ledger, steps),
                store=interrupted(self.store, steps),
                quarantine=interrupted(quarantine, steps),
                metrics=METRICS,
                clock=CLOCK,
                limits=BatchLimits(max_rows=4),
                executor=executor,
            ).load_available()

    def load_with_crashes(self, *crashes_at: int) -> int:
        """Load repeatedly until a load succeeds; return the number of crashes."""
        crashes = 0
        for crash_at in (*crashes_at, 0):
            try:
                self.load(crash_at)
            except CrashError:
                crashes += 1
        return crashes

    def stored(self) -> list[str]:
        rows = self.store.rows
        names = [row["event_name"] for row in rows["events"]]
        names += [row["metric_name"] for row in rows["performance"]]
        return sorted(names + [row["message"] for row in rows["errors"]])

    def quarantined(self) -> list[str]:
        entries = [json.loads(f.read_text()) for f in (self.folder / "quarantine").glob("*.json")]
        return sorted(
            entry["item"]["name"] if "item" in entry else entry["payload"] for entry in entries
        )

    def ids_are_unique(self) -> bool:
        ids = [row["id"] for rows in self.store.rows.values() for row in rows]
        return len(ids) == len(set(ids))


def interrupted(inner: T, steps: Steps) -> T:
    return cast("T", Interrupted(inner, steps))  # it has every method that the inner one has


@contextmanager
def harness(order: str) -> Generator[World]:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        yield World(Path(folder), order)


def events(*names: str, after_ms: int = 0, key: bytes = b"") -> bytes:
    """Encode a record; `name#id` is an event with an event id."""
    items = [
        Event("web_a", NOON, name.partition("#")[0], event_id=name.partition("#")[2])
        for name in names
    ]
    return encode_record(EventRecord(NOON + after_ms, UNKNOWN_VISITOR, items, key))


def vital(name: str) -> bytes:
    item = Vital("web_a", NOON, name, 1.5, "/")
    return encode_record(VitalRecord(NOON, UNKNOWN_VISITOR, [item]))


def error(message: str) -> bytes:
    item = ErrorEvent("web_a", NOON, message, "/")
    return encode_record(ErrorRecord(NOON, UNKNOWN_VISITOR, [item]))


def append_everything_odd(made: World) -> None:
    made.append(
        worker_0=[
            events("a#1", "b"),
            vital("LCP"),
            events("bad 1", "c", "d"),
            b"no record",
            events("repeats a#1", after_ms=3),
        ],
        worker_1=[
            error("oops"),
            events("e#2", key=b"k" * 32, after_ms=1),
            events("repeats e", key=b"k" * 32, after_ms=2),
            events("bad 2", after_ms=4),
            events("f", after_ms=5),
        ],
    )


EVERYTHING = sorted(["a", "b", "LCP", "c", "d", "oops", "e", "f"])
SET_ASIDE = sorted(["bad 1", "bad 2", "bm8gcmVjb3Jk"])


in_every_order = pytest.mark.parametrize("order", ORDERS)


@pytest.mark.slow
@in_every_order
def test_crash_at_any_single_step_does_not_change_the_final_state(order: str) -> None:
    step, crashes = 1, 1
    while crashes:
        with harness(order) as made:
            append_everything_odd(made)
            crashes = made.load_with_crashes(step)
            assert (step, made.stored()) == (step, EVERYTHING)
            assert (step, made.quarantined()) == (step, SET_ASIDE)
            assert made.ids_are_unique()
        step += 1
    assert step > 100  # the crash steps were really reached


@in_every_order
def test_crash_at_any_step_during_appends_does_not_change_the_final_state(order: str) -> None:
    step, crashes = 1, 1
    while crashes:
        with harness(order) as made:
            made.append(worker_0=[events("a#1"), vital("LCP")], worker_1=[events("b#2")])
            try:
                made.load(step)
                crashes = 0
            except CrashError:
                pass
            made.append(worker_0=[events("again#1", "c")], worker_1=[events("d")])
            made.load_with_crashes()
            assert (step, made.stored()) == (step, ["LCP", "a", "b", "c", "d"])
        step += 1
    assert step > 20


@settings(max_examples=examples(60))
@given(st.lists(st.integers(1, 60), max_size=8), st.sampled_from(sorted(ORDERS)))
def test_any_number_of_crashes_does_not_change_the_final_state(
    crashes_at: list[int], order: str
) -> None:
    with harness(order) as made:
        append_everything_odd(made)
        made.load_with_crashes(*crashes_at)
        assert made.stored() == EVERYTHING
        assert made.quarantined() == SET_ASIDE
        assert made.ids_are_unique()


@in_every_order
def test_without_a_crash_everything_is_stored_once(order: str) -> None:
    with harness(order) as made:
        append_everything_odd(made)
        assert made.load_with_crashes() == 0
        assert made.stored() == EVERYTHING
        with pytest.raises(CrashError):
            made.load(1)
