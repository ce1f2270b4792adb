"""Processes that run rounds without end, in a module that a spawned process can import."""

import multiprocessing
import queue
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from tests.long_run.rounds import new_rounds, run_round
from tests.long_run.stores import STORES

_SPAWN: Final = multiprocessing.get_context("spawn")
"""A process that has imported chDB must not fork."""

Reports = Any
"""A queue of the reports of single rounds; its class has no type that can be written down."""


@contextmanager
def running_workers(store: str, count: int) -> Generator[tuple[list[Any], Reports]]:
    """Start processes that put reports in a queue; they end when the current round does."""
    reports, ending = _SPAWN.Queue(), _SPAWN.Event()
    workers = [_SPAWN.Process(target=_work, args=(store, reports, ending)) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        yield workers, reports
    finally:
        ending.set()
        reports.cancel_join_thread()
        while any(worker.is_alive() for worker in workers):
            _take_all(reports)  # a process ends when its reports are taken
        for worker in workers:
            worker.join()


def _take_all(reports: Reports) -> None:
    try:
        while True:
            reports.get(timeout=0.1)
    except queue.Empty:
        return


def _work(store: str, reports: Reports, ending: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the round
    signal.signal(signal.SIGTERM, _end)  # so that servers are ended
    with STORES[store]() as tables:
        for name in new_rounds():
            if ending.is_set():
                return
            reports.put(run_round(name, tables))


def _end(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(1)
