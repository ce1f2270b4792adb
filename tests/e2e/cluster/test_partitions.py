"""The crash test cuts links of replicated ClickHouse servers, and detects lost and doubled rows.

More rounds, with all faults: `python -m chaos --store replicas`.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PROJECT = Path(__file__).parents[3]
STORE = "replicas"

pytestmark = [pytest.mark.clickhouse, pytest.mark.slow]


class Outcome(NamedTuple):
    """The exit code, the output and the report of a run."""

    code: int
    output: str
    report: dict[str, Any]


def crash_test(tmp_path: Path, *options: str) -> Outcome:
    """Run one round in which a replica is cut off from everything."""
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", "chaos", "--directory", str(tmp_path), "--json", str(file)]
    command += ["--rounds", "1", "--store", STORE, "--only", "isolate a replica"]
    done = subprocess.run(
        [*command, *options],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        timeout=800,
        check=False,
    )
    reports = json.loads(file.read_text())
    if STORE not in reports:
        pytest.skip(done.stdout)  # this machine has no replicas, or no network namespaces
    return Outcome(done.returncode, done.stdout + done.stderr, reports[STORE])


def test_cut_links_lose_and_double_no_acknowledged_event(tmp_path: Path) -> None:
    outcome = crash_test(tmp_path)

    assert outcome.code == 0, outcome.output
    assert outcome.report["faults"] == {"isolate a replica": 1}
    assert outcome.report["acknowledged"] > 0
    violations = ("lost", "doubled", "refused_but_stored", "never_sent")
    assert [outcome.report[name] for name in violations] == [0, 0, 0, 0]


def test_servers_that_lose_and_double_rows_are_detected(tmp_path: Path) -> None:
    outcome = crash_test(tmp_path, "--damage-store")

    assert outcome.code == 1, outcome.output
    assert outcome.report["lost"] > 0
    assert outcome.report["doubled"] > 0
    assert f", {STORE}, round 1: in " in outcome.output
