"""Nothing stays mounted after a run of the crash test that was killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from chaos.powercut.file_systems import FILE_SYSTEMS
from chaos.powercut.leftovers import unmount_lazily, unmount_leftovers
from testing.service import wait_until

DISK = FILE_SYSTEMS["ext4"]
MISSING = DISK.missing()
PROJECT = Path(__file__).parents[4]
PROGRAM = """
import sys, time
from pathlib import Path
from chaos.disk import DiskUnavailable
from chaos.powercut.file_systems import FILE_SYSTEMS
from chaos.powercut.recording_disk import RecordingDisk
disk = RecordingDisk(Path(sys.argv[1]), FILE_SYSTEMS["ext4"], ignores_flushes=False)
try:
    disk.make()
except DiskUnavailable as error:
    print(error, flush=True)
else:
    print("made", flush=True)
time.sleep(600)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"no disk can be recorded without {MISSING}"),
]


@pytest.fixture
def run(tmp_path: Path) -> Generator[subprocess.Popen[str]]:
    """A process that has made a disk in `tmp_path`."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    try:
        if line != "made":
            pytest.skip(f"this machine forbids to mount: {line}")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        unmount_lazily(tmp_path / "device")


def mounts(directory: Path) -> list[str]:
    """Return the sources of what is mounted in a directory."""
    lines = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [source for source, target, *_ in lines if Path(target).is_relative_to(directory)]


def test_daemon_of_a_killed_run_unmounts_its_disk_and_ends(
    run: subprocess.Popen[str], tmp_path: Path
) -> None:
    daemon, _ = mounts(tmp_path)
    run.kill()
    wait_until(lambda: not mounts(tmp_path), "the disk is unmounted")
    wait_until(lambda: not Path("/proc", daemon).exists(), "the daemon has ended")


@pytest.mark.usefixtures("run")
def test_disk_whose_daemon_was_killed_is_unmounted_before_another_one_is_made(
    tmp_path: Path,
) -> None:
    daemon, device = mounts(tmp_path)
    assert device.startswith("/dev/loop")
    unmount_leftovers()
    assert mounts(tmp_path) == [daemon, device]

    os.kill(int(daemon), signal.SIGKILL)
    wait_until(lambda: is_dead(daemon), "the daemon is dead")
    unmount_leftovers()

    assert mounts(tmp_path) == []


def is_dead(process: str) -> bool:
    return not Path("/proc", process, "cmdline").read_bytes()  # its parent has not waited for it
