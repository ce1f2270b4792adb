"""`make bench`: measures everything beside its yardsticks, prints one table and keeps the results.

Every part runs in a process of its own, so that none is measured in the memory of another.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from bench import footprint, guarantees, half_load, ingestion, questions, sustained
from bench.figures import Figure
from bench.results import (
    RESULTS,
    Results,
    collect,
    describe_machine,
    print_results,
    write_results,
)
from bench.scale import Scale, quick

PARTS: Mapping[str, Callable[[Scale], list[Figure]]] = {
    "ingestion": ingestion.measure,
    "half-load": half_load.measure,
    "sustained": sustained.measure,
    "questions": questions.measure,
    "footprint": footprint.measure,
    "guarantees": guarantees.measure,
}
DEFAULT_FOLDER = Path(tempfile.gettempdir()) / "millrace-bench"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--folder",
        type=Path,
        default=DEFAULT_FOLDER,
        help="on the disk that is measured; data sets stay there for the next run",
    )
    parser.add_argument("--quick", action="store_true", help="three minutes, small data sets")
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; may be repeated")
    parser.add_argument("--runs", type=int, help="turns of everything but questions")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    parser.add_argument("--figures", type=Path, help=argparse.SUPPRESS)  # of one part
    return parser.parse_args()


def main() -> None:
    """Run the parts and report."""
    options = _arguments()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    options.folder.mkdir(parents=True, exist_ok=True)
    scale = quick(options.folder) if options.quick else Scale(folder=options.folder)
    if options.runs:
        scale = msgspec.structs.replace(scale, runs=options.runs)
    parts: Sequence[str] = options.only or tuple(PARTS)
    if options.figures is not None:
        (part,) = parts
        options.figures.write_bytes(msgspec.json.encode(PARTS[part](scale)))
        return
    machine = describe_machine(options.folder)
    figures = [figure for part in parts for figure in _in_own_process(part, options)]
    _report(collect(figures, machine), options)


def _in_own_process(part: str, options: argparse.Namespace) -> list[Figure]:
    print(f"measuring {part} ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "figures.json"
        command = [sys.executable, "-m", "bench", "--only", part, "--figures", str(file)]
        command += ["--folder", str(options.folder), *(["--quick"] if options.quick else [])]
        command += ["--runs", str(options.runs)] if options.runs else []
        _run(command)
        return msgspec.json.decode(file.read_bytes(), type=list[Figure])


def _run(command: Sequence[str]) -> None:
    """Run a part to its end, or end it so that it ends what it has started."""
    process = subprocess.Popen(command)
    try:
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code:
        raise SystemExit(f"a part of the benchmark failed: {' '.join(command)}")


def _report(results: Results, options: argparse.Namespace) -> None:
    print_results(results)
    if options.json:
        write_results(results, options.json)
    if not (options.quick or options.only):
        kept = RESULTS / f"{results.date[:10]}-{results.commit.rstrip('+')}.json"
        write_results(results, kept)
        print(f"kept as {kept}; for the page: python -m bench.page {kept}")


if __name__ == "__main__":
    main()
