"""The crash test cuts links of replicated ClickHouse servers, and detects lost and doubled rows.

More rounds, with all faults: `python -m chaos --store replicas`.
"""

from pathlib import Path

import pytest

from testing.crash_test import Outcome, run_crash_test

STORE = "replicas"

pytestmark = [pytest.mark.clickhouse, pytest.mark.slow]


def crash_test(tmp_path: Path, *options: str) -> Outcome:
    """Run one round in which a replica is cut off; a machine may have no network namespaces."""
    chosen = ("--store", STORE, "--only", "isolate a replica", *options)
    return run_crash_test(tmp_path, STORE, *chosen, timeout_s=800)


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
