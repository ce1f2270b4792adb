"""`python -m chaos`: runs the crash test and prints its report.

Exits 1 after a violation, and 2 if there was none although the run was to break something, or if
this machine could run no round.
"""

import argparse
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from chaos.disk_kinds import ORDINARY, REPLICAS, disk_kinds
from chaos.faults import FAULTS
from chaos.mount_namespace import enter_own_namespace
from chaos.report import Report, as_table, describe_missed_damage
from chaos.run import Run

_DISKS = tuple(name for name in disk_kinds(ignores_flushes=False) if name not in REPLICAS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="on all disks together")
    parser.add_argument("--seed", type=int, help="repeats the faults of another run")
    parser.add_argument("--json", type=Path, help="write the reports there too, as JSON")
    parser.add_argument("--only", choices=sorted(FAULTS), default="", help="one kind of fault")
    parser.add_argument(
        "--disks",
        nargs="+",
        choices=_DISKS,
        default=[name for name in _DISKS if name != ORDINARY],
        help="where the data is: in memory, where the disk can be full; on file systems whose "
        "power can be cut; or on the ordinary disk, for which nothing is mounted",
    )
    parser.add_argument(
        "--store",
        choices=("embedded", "replicas"),
        default="embedded",
        help="where the rows are: in the data directory, or on replicated ClickHouse servers, "
        "whose links are cut; then the data directory is on the ordinary disk",
    )
    parser.add_argument(
        "--directory", type=Path, help="create the directory of the run there [default: TMPDIR]"
    )
    parser.add_argument(
        "--ignore-flushes",
        action="store_true",
        help="break the disks whose power can be cut: the test must find that events are lost",
    )
    parser.add_argument(
        "--damage-store",
        action="store_true",
        help="delete and double rows on the replicated servers: the test must find both",
    )
    return parser.parse_args()


def main() -> int:
    """Run the crash test and report. Violations and the path of the kept data are printed last."""
    arguments = _arguments()
    if arguments.store == "embedded" and os.geteuid() == 0 and sys.platform == "linux":
        with suppress(OSError):  # a container may forbid it, and then most likely to mount at all
            enter_own_namespace()
    seed = secrets.randbelow(1_000_000) if arguments.seed is None else arguments.seed
    work = Path(tempfile.mkdtemp(prefix="headrace-chaos-", dir=arguments.directory))
    print(f"seed {seed}, {arguments.rounds} rounds in {work}", flush=True)
    run = Run(
        work,
        seed=seed,
        only=arguments.only,
        ignores_flushes=arguments.ignore_flushes,
        damages_store=arguments.damage_store,
    )
    signal.signal(signal.SIGINT, lambda _number, _frame: run.stop_after_round())
    signal.signal(signal.SIGTERM, _terminate)
    try:
        run.run(
            arguments.rounds, list(REPLICAS) if arguments.store == "replicas" else arguments.disks
        )
    except SystemExit:
        shutil.rmtree(work, ignore_errors=True)
        raise
    _show(run.reports, arguments.json)
    if not run.reports:
        shutil.rmtree(work)
        return 2
    if run.violations:
        print("", *run.violations, f"The data and the logs are kept in {work}.", sep="\n")
        return 1
    shutil.rmtree(work)
    if arguments.ignore_flushes or arguments.damage_store:
        print("", describe_missed_damage(run.reports), sep="\n")
        return 2
    return 0


def _terminate(number: int, _frame: FrameType | None) -> None:
    """End the run at once, and unmount and stop everything that belongs to it."""
    raise SystemExit(128 + number)


def _show(reports: Sequence[Report], json_file: Path | None) -> None:
    print(as_table(reports) if reports else "no round was run")
    if json_file is not None:
        content = {report.disk: report.as_json() for report in reports}
        json_file.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
