"""Processes that run rounds without end, in a module that a spawned process can import."""

import multiprocessing
import queue
import signal
from contextlib import suppress
from typing import Any, Final, NoReturn

from tests.long_run.rounds import Report, new_rounds, run_round
from tests.long_run.stores import STORES

_SPAWN: Final = multiprocessing.get_context("spawn")
"""A process that has imported chDB must not fork."""

_Reports = Any
"""A queue of the reports of single rounds; its class has no type that can be written down."""


class Workers:
    """Processes that run new rounds until `end`, of one kind of data or of all."""

    def __init__(self, store: str, count: int, kind: str | None = None) -> None:
        self._reports: _Reports = _SPAWN.Queue()
        self._ending = _SPAWN.Event()
        arguments = (store, kind, self._reports, self._ending)
        self._processes = [_SPAWN.Process(target=_work, args=arguments) for _ in range(count)]
        for process in self._processes:
            process.start()

    def take(self, timeout_s: float) -> Report | None:
        """Return the report of a round, or none if none ends in this time.

        Raises `RuntimeError` when a process has ended.
        """
        try:
            report: Report = self._reports.get(timeout=timeout_s)
        except queue.Empty:
            if not all(process.is_alive() for process in self._processes):
                raise RuntimeError("a process has ended") from None
            return None
        return report

    def end(self) -> list[Report]:
        """End the processes after the query that each runs; return the reports not yet taken."""
        self._ending.set()
        last: list[Report] = []
        while any(process.is_alive() for process in self._processes):
            with suppress(queue.Empty):  # a process ends when its reports are taken
                last.append(self._reports.get(timeout=0.1))
        with suppress(queue.Empty):
            while True:
                last.append(self._reports.get(timeout=0.1))
        return last


def _work(store: str, kind: str | None, reports: _Reports, ending: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the round
    signal.signal(signal.SIGTERM, _end)  # so that servers are ended
    with STORES[store]() as tables:
        for name in new_rounds(kind):
            if ending.is_set():
                return
            reports.put(run_round(name, tables, ending.is_set))


def _end(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(1)
