"""`python -m chaos`: runs the crash test and prints its report. Exits 1 after a violation."""

import argparse
import json
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos.disk import keep_copy, prepare_disk
from chaos.faults import FAULTS, GuaranteeViolated
from chaos.report import Report
from chaos.rounds import Rounds
from chaos.service import RecoveryTimeout, Service, free_port


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, help="repeats the faults of another run")
    parser.add_argument("--json", type=Path, help="write the table there too, as JSON")
    parser.add_argument("--only", choices=sorted(FAULTS), default="", help="one kind of fault")
    parser.add_argument(
        "--ordinary-disk", action="store_true", help="mount nothing: no faults of a full disk"
    )
    return parser.parse_args()


def main() -> int:
    """Run the crash test and report. Violations and the path of the kept data are printed last."""
    arguments = _arguments()
    seed = secrets.randbelow(1_000_000) if arguments.seed is None else arguments.seed
    work = Path(tempfile.mkdtemp(prefix="headrace-chaos-"))
    with prepare_disk(work, ordinary=arguments.ordinary_disk) as disk:
        service = Service(disk.data, log=work / "service.log", port=free_port())
        rounds = Rounds(service=service, disk=disk, seed=seed, only=arguments.only)
        print(f"seed {seed}, {arguments.rounds} rounds in {work}", flush=True)
        signal.signal(signal.SIGINT, lambda _number, _frame: rounds.stop_after_round())
        violation = ""
        try:
            rounds.run(arguments.rounds)
        except (GuaranteeViolated, RecoveryTimeout) as error:
            violation = f"seed {seed}, round {rounds.report.rounds}: {error}"
        finally:
            service.kill_everything()
            if violation:
                keep_copy(disk.data, work / "kept")
    _show(rounds.report, arguments.json)
    if violation:
        print(f"\nBROKEN: {violation}\nThe data is kept in {work / 'kept'}, the log beside it.")
        return 1
    shutil.rmtree(work)
    return 0


def _show(report: Report, json_file: Path | None) -> None:
    print(report.as_table())
    if json_file is not None:
        json_file.write_text(json.dumps(report.as_json(), indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
