"""Runs one round of the crash test in a process of its own, and reads its report."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PROJECT = Path(__file__).parents[1]


class Outcome(NamedTuple):
    """The exit code, the output and the report of a run."""

    code: int
    output: str
    report: dict[str, Any]


def run_crash_test(folder: Path, disk: str, *options: str, timeout_s: int) -> Outcome:
    """Run one round on a disk, or a store; skip the test where the machine does not have it."""
    file = folder / "report.json"
    command = [sys.executable, "-m", "chaos", "--directory", str(folder), "--json", str(file)]
    done = subprocess.run(
        [*command, "--rounds", "1", *options],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        timeout=timeout_s,
        check=False,
    )
    reports = json.loads(file.read_text())
    if disk not in reports:
        pytest.skip(done.stdout)
    return Outcome(done.returncode, done.stdout + done.stderr, reports[disk])
