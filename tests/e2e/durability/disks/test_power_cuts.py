"""The crash test cuts the power of a real file system, and detects a disk that ignores flushes."""

from pathlib import Path

import pytest

from chaos.powercut.file_systems import FILE_SYSTEMS
from testing.crash_test import Outcome, run_crash_test

DISK = "ext4"
MISSING = FILE_SYSTEMS[DISK].missing()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"the power of {DISK} cannot be cut without {MISSING}"
    ),
]


def crash_test(tmp_path: Path, *options: str) -> Outcome:
    """Run one round in which the power is cut; a machine may forbid to mount."""
    chosen = ("--seed", "3", "--disks", DISK, "--only", "cut the power", *options)
    return run_crash_test(tmp_path, DISK, *chosen, timeout_s=600)


def test_power_cut_loses_and_doubles_no_acknowledged_event(tmp_path: Path) -> None:
    outcome = crash_test(tmp_path)

    assert outcome.code == 0, outcome.output
    assert outcome.report["power_cuts"] >= 1
    assert outcome.report["crash_images"] >= 1
    assert outcome.report["acknowledged"] > 0
    violations = ("lost", "doubled", "refused_but_stored", "never_sent")
    assert [outcome.report[name] for name in violations] == [0, 0, 0, 0]


def test_disk_that_ignores_flushes_is_detected(tmp_path: Path) -> None:
    outcome = crash_test(tmp_path, "--ignore-flushes")

    assert outcome.code == 1, outcome.output
    assert outcome.report["lost"] > 0
    assert f"BROKEN: seed 3, {DISK}, round 1: in " in outcome.output
