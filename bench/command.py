"""Arguments and result files, shared by the programs that run a whole benchmark."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from bench.report.results import RESULTS, Results, write_results

DEFAULT_FOLDER = Path(tempfile.gettempdir()) / "headrace-bench"


def benchmark_parser(
    program: str, description: str | None, parts: Collection[str]
) -> argparse.ArgumentParser:
    """Return a parser of the arguments that every such program takes."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument(
        "--folder",
        type=Path,
        default=DEFAULT_FOLDER,
        help="on the disk that is measured; data sets stay there for the next run",
    )
    parser.add_argument("--quick", action="store_true", help="three minutes, little data")
    parser.add_argument("--only", choices=parts, action="append", help="a part; may be repeated")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    return parser


def parse_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the arguments, and make sure that an interrupted run stops its child processes."""
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    options.folder.mkdir(parents=True, exist_ok=True)
    return options


def save_full_run(
    results: Results, options: argparse.Namespace, *, page_program: str, suffix: str = ""
) -> None:
    """Save the results of all parts in bench/results, and print how to add them to a page."""
    if options.quick or options.only:
        return
    path = RESULTS / f"{results.date[:10]}-{results.commit.rstrip('+')}{suffix}.json"
    write_results(results, path)
    print(f"kept as {path}; for the page: python -m {page_program} {path}")
