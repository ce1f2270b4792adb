"""Erasures of several machines with one directory: each one erases in its own files.

A machine announces its erasure when it has deleted the rows that it found. The others find by the
keyed hashes what they have themselves: rows that were in their logs only, records, entries of the
quarantine, kept replies. Each one notes how far it is; an erasure is done where all are.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from headrace.base.clock import MILLISECONDS_PER_DAY, Clock, utc_datetime
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.erasure.receipt import describe_gone_machine
from headrace.ports.rows.erasure import Erasure, ErasureStore
from headrace.ports.rows.shared_erasures import ErasurePart, Machine, SharedErasures

SEEN_EVERY_MS: Final = 5_000
RUNNING_MS: Final = 20_000
"""A machine that was not seen for so long is not running: it has nothing in answers."""

GONE_MS: Final = 30 * MILLISECONDS_PER_DAY
"""A machine that was not seen for so long is not waited for. The receipt names it."""

MAX_CLOCK_SKEW_MS: Final = 30_000
"""Nothing is erased while the clocks of two machines differ by more."""

_JOINED_LATER_MS: Final = 2 * MAX_CLOCK_SKEW_MS
"""More than the clocks of two machines differ."""


class ErasingMachines:
    """The part of one machine in the erasures of all. Blocking, for one thread at a time.

    All methods raise `StoreUnavailable`. A machine that waits for others tells them again what the
    directory lacks: it may have been restored, or a replica without the last changes took over.
    """

    def __init__(
        self, shared: SharedErasures, erasures: ErasureStore, *, machine_id: str, clock: Clock
    ) -> None:
        self._shared = shared
        self._erasures = erasures
        self._machine_id = machine_id
        self._clock = clock
        self._has_key = False
        self._next_seen_ms = 0
        self._known: set[str] = set()

    def join(self) -> None:
        """Take part: use the key of all machines, and note that this one runs.

        Also raises `StoreUnavailable` where the clock of another machine is far ahead: with it one
        of the two would take itself for new, and keep what is to be erased.
        """
        if not self._has_key:
            self._erasures.use_key(self._shared.agree_on_key(self._erasures.key()))
            self._has_key = True
        now_ms = self._clock.now_ms()
        if not 0 < self._next_seen_ms - now_ms <= SEEN_EVERY_MS:  # also where a clock was set back
            self._shared.note_seen(self._machine_id)
            self._check_clocks(now_ms)
            self._next_seen_ms = now_ms + SEEN_EVERY_MS

    def adopt(self) -> list[Erasure]:
        """Store the erasures of other machines that are new here; return those to carry out."""
        self.join()
        adopted: list[Erasure] = []
        for erasure_id in sorted(self._shared.ids() - self._known):
            if self._erasures.get(erasure_id) is None:
                erasure = self._shared.get(erasure_id)
                if erasure is not None:
                    erasure = self._as_of_here(erasure)
                    self._erasures.put(erasure)
                    adopted += [] if erasure.is_done else [erasure]
            self._known.add(erasure_id)
        return adopted

    def note_clean(self, erasure: Erasure) -> None:
        """Tell the others that no answer has rows of this machine, and what to erase."""
        self.join()
        self._shared.announce(erasure)
        self._put_part(erasure, ErasurePart(machine_id=self._machine_id, clean_ms=self._now_ms()))

    def are_answers_clean(self, erasure: Erasure) -> bool:
        """Return whether no running machine has rows that may come into answers."""
        clean = {part.machine_id for part in self._parts(erasure) if part.clean_ms}
        if self._machine_id not in clean:  # see the docstring of the class
            self.note_clean(erasure)
        since_ms = self._now_ms() - RUNNING_MS
        return all(machine.id in clean or machine.seen_ms < since_ms for machine in self._others())

    def note_files_clean(self, erasure: Erasure) -> None:
        """Tell the others that no file of this machine has the rows."""
        self._shared.announce(erasure)
        now_ms = self._now_ms()
        part = ErasurePart(machine_id=self._machine_id, clean_ms=now_ms, done_ms=now_ms)
        self._put_part(erasure, part)

    def are_files_clean(self, erasure: Erasure) -> bool:
        """Return whether no file of another machine has the rows, but of those that are gone."""
        if self._machine_id not in self._finished(erasure):  # see the docstring of the class
            self.note_files_clean(erasure)
        since_ms = self._now_ms() - GONE_MS
        return all(machine.seen_ms < since_ms for machine in self._unfinished(erasure))

    def describe_absent(self, erasure: Erasure) -> str:
        """Return which machines have to be started so that they erase, "" for none."""
        since_ms = self._now_ms() - RUNNING_MS
        return "; ".join(
            f"the machine {machine.id}, seen last at {_time(machine.seen_ms)}, has not erased yet"
            for machine in self._unfinished(erasure)
            if 0 < machine.seen_ms < since_ms
        )

    def with_all_parts(self, erasure: Erasure) -> Erasure:
        """Return an erasure with the rows of all machines, and the machines that are gone."""
        rows: Counter[str] = Counter()
        for part in self._parts(erasure):
            rows.update(part.rows)
        gone = tuple(
            describe_gone_machine(machine.id, _time(machine.seen_ms) if machine.seen_ms else None)
            for machine in self._unfinished(erasure)
        )
        return replace(erasure, rows=dict(rows), by_hand=gone)

    def close(self) -> None:
        """Close the connections."""
        self._shared.close()

    def _check_clocks(self, now_ms: int) -> None:
        for machine in self._others():
            if machine.seen_ms > now_ms + MAX_CLOCK_SKEW_MS:
                raise StoreUnavailable(
                    f"the clock of the machine {machine.id} is "
                    f"{(machine.seen_ms - now_ms) // 1000} s ahead of this machine's clock"
                )

    def _put_part(self, erasure: Erasure, part: ErasurePart) -> None:
        self._shared.put_part(erasure.id, replace(part, rows=erasure.rows))

    def _parts(self, erasure: Erasure) -> Sequence[ErasurePart]:
        return self._shared.parts(erasure.id)

    def _others(self) -> list[Machine]:
        return [one for one in self._shared.machines() if one.id != self._machine_id]

    def _finished(self, erasure: Erasure) -> frozenset[str]:
        return frozenset(part.machine_id for part in self._parts(erasure) if part.done_ms)

    def _unfinished(self, erasure: Erasure) -> list[Machine]:
        """Return the machines that have not erased, and were there when it was asked for."""
        done = self._finished(erasure)
        return [
            machine
            for machine in self._others()
            if machine.id not in done and not _joined_later(machine, erasure)
        ]

    def _as_of_here(self, erasure: Erasure) -> Erasure:
        """Return an erasure, done where this machine was new after it and has nothing of it."""
        (own,) = (one for one in self._shared.machines() if one.id == self._machine_id)
        if _joined_later(own, erasure):
            return replace(erasure, done_ms=self._now_ms())
        return erasure

    def _now_ms(self) -> int:
        return self._clock.now_ms()


def forget_machine(shared: SharedErasures, machine_id: str, *, clock: Clock) -> None:
    """Note that a machine is gone for good: neither its clock nor its files are waited for.

    Receipts name it where it has not erased, and it takes part again when it is started. Raises
    `OperatorError` where it is unknown or runs, and `StoreUnavailable`.
    """
    machines = {machine.id: machine for machine in shared.machines()}
    machine = machines.get(machine_id)
    if machine is None:
        known = f"; known are: {', '.join(sorted(machines))}" if machines else ""
        raise OperatorError(f"no machine has the name {machine_id!r}{known}")
    if not machine.seen_ms:
        return
    now_ms = clock.now_ms()
    is_running = now_ms - RUNNING_MS <= machine.seen_ms <= now_ms + MAX_CLOCK_SKEW_MS
    if is_running or not shared.forget_machine(machine):
        raise OperatorError(
            f"the machine {machine_id} runs, or has run in the last {RUNNING_MS // 1000} seconds: "
            "stop it first"
        )


class OneMachine:
    """The `ErasingMachines` of a machine that shares nothing."""

    def join(self) -> None:
        """Do nothing."""

    def adopt(self) -> list[Erasure]:
        """Return nothing."""
        return []

    def note_clean(self, erasure: Erasure) -> None:
        """Do nothing."""

    def are_answers_clean(self, erasure: Erasure) -> bool:
        """Return True: there are no others."""
        del erasure
        return True

    def note_files_clean(self, erasure: Erasure) -> None:
        """Do nothing."""

    def are_files_clean(self, erasure: Erasure) -> bool:
        """Return True: there are no others."""
        del erasure
        return True

    def describe_absent(self, erasure: Erasure) -> str:
        """Return "": there are no others."""
        del erasure
        return ""

    def with_all_parts(self, erasure: Erasure) -> Erasure:
        """Return the erasure."""
        return erasure

    def close(self) -> None:
        """Do nothing."""


def _joined_later(machine: Machine, erasure: Erasure) -> bool:
    """Return whether a machine was new after an erasure; its clock may have been wrong then."""
    is_possible = machine.first_seen_ms <= machine.seen_ms
    return is_possible and machine.first_seen_ms > erasure.requested_ms + _JOINED_LATER_MS


def _time(at_ms: int) -> str:
    return utc_datetime(at_ms).isoformat(timespec="seconds").replace("+00:00", "Z")
