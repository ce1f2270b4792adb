"""`python -m chaos.browser`: the crash test of the tracker. Exits 1 where events are lost or
stored twice.
"""

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from chaos.browser.faults import FAULTS
from chaos.browser.run import Report, run
from testing.browsers.kinds import Kind


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos.browser", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, help="repeats the faults of another run")
    parser.add_argument("--browser", type=Kind, choices=list(Kind), default=Kind.CHROMIUM)
    parser.add_argument("--only", choices=sorted(FAULTS), default="", help="one kind of fault")
    parser.add_argument(
        "--forget-events",
        action="store_true",
        help="break the tracker, whose outbox is then in memory: the test must find lost events",
    )
    parser.add_argument(
        "--strip-ids",
        action="store_true",
        help="take the ids out of all requests: the test must find events that are stored twice",
    )
    return parser.parse_args()


def main() -> int:
    """Run the crash test and print its report."""
    arguments = _arguments()
    seed = secrets.randbelow(1_000_000) if arguments.seed is None else arguments.seed
    work = Path(tempfile.mkdtemp(prefix="headrace-browser-"))
    print(f"seed {seed}, {arguments.rounds} rounds in {work}", flush=True)
    report = run(
        work,
        rounds=arguments.rounds,
        seed=seed,
        keeps_events=not arguments.forget_events,
        strips_ids=arguments.strip_ids,
        only=arguments.only,
        browser=arguments.browser,
    )
    print(as_text(report))
    if report.lost or report.doubled:
        print(f"The data and the log are kept in {work}.")
        return 1
    shutil.rmtree(work)
    return 0


def as_text(report: Report) -> str:
    """Return the lines of a report."""
    rounds = ", ".join(f"{name} {count}" for name, count in report.faults.items())
    return (
        f"{sum(report.faults.values())} rounds: {rounds}\n"
        f"{report.returned} events whose call returned: "
        f"{len(report.lost)} lost, {len(report.doubled)} stored twice"
        + "".join(f"\nlost: {event_id}" for event_id in report.lost[:20])
        + "".join(f"\nstored twice: {event_id}" for event_id in report.doubled[:20])
    )


if __name__ == "__main__":
    sys.exit(main())
