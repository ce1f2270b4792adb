"""Compare many drawn queries with the oracle, in process, over stores of their own.

Usage: .venv/bin/python -m tests.long_run [--pairs N] [--minutes N] [--processes N]
           [--store embedded|server|shards|replicas] [--kind rows|paths] [--round NAME]

Each data set and its queries come from one fresh seed. A difference is printed at once, reduced,
with the command that repeats it; the exit code is 1 then. Interrupted or terminated, it ends with
what it has found so far.
"""

import argparse
import resource
import signal
import sys
import time
from typing import Final, NoReturn

from tests.long_run.areas import DATA_KINDS
from tests.long_run.processes import Workers
from tests.long_run.rounds import Report, RoundName, parse_round, run_round
from tests.long_run.stores import STORES
from tests.long_run.texts import description_of, progress_of, summary_of

_PROGRESS_S: Final = 20.0


def main() -> None:
    """Run what the arguments say and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="the run ends by then")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--store", choices=list(STORES), default="embedded")
    parser.add_argument(
        "--kind",
        choices=[kind.name for kind in DATA_KINDS],
        help="only data sets of this kind: paths are those of funnels and retention",
    )
    parser.add_argument("--round", type=parse_round, help="only this one, in this process")
    given = parser.parse_args()
    if given.round is not None:
        _finish(_run_one(given.round, given.store))
    _finish(_run(given))


def _run_one(name: RoundName, store: str) -> Report:
    with STORES[store]() as tables:
        report = run_round(name, tables)
    for difference in report.differences:
        _say(description_of(difference, store))
    return report


def _run(given: argparse.Namespace) -> Report:
    """Run rounds in processes until there are enough pairs, or the time is over."""
    started_s = shown_s = time.monotonic()
    end_s = started_s + given.minutes * 60
    whole = Report()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    workers = Workers(given.store, given.processes, given.kind)
    try:
        while whole.pairs < given.pairs and time.monotonic() < end_s:
            _add(whole, workers.take(1), given.store)
            if time.monotonic() - shown_s > _PROGRESS_S:
                shown_s = time.monotonic()
                _say(progress_of(whole, shown_s - started_s))
    except KeyboardInterrupt:
        _say("interrupted")
    finally:
        for report in workers.end():
            _add(whole, report, given.store)
    _say(progress_of(whole, time.monotonic() - started_s))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # of processes that have ended: all
    used_ms = (used.ru_utime + used.ru_stime) * 1000
    _say(f"{used_ms / max(whole.pairs, 1):.1f} ms of processor time a pair, starts included")
    return whole


def _add(whole: Report, report: Report | None, store: str) -> None:
    if report is not None:
        whole.add(report)
        for difference in report.differences:
            _say(description_of(difference, store))


def _finish(report: Report) -> NoReturn:
    _say("\n" + summary_of(report))
    raise SystemExit(1 if report.differences else 0)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
