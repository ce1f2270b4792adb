"""A run of the crash test has mounts that no other process sees."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MOUNT = """
import subprocess, sys
from chaos.mount_namespace import enter_own_namespace
enter_own_namespace()
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", sys.argv[1]], check=True)
print(sys.argv[1] in open("/proc/self/mounts").read(), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounting requires root on Linux"
)
def test_what_a_run_mounts_is_not_mounted_for_others(tmp_path: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", MOUNT, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    first_line = run.stdout.readline()
    others = Path("/proc/self/mounts").read_text()
    _, errors = run.communicate()
    if not first_line:
        pytest.skip(f"this machine forbids to mount: {errors}")
    assert first_line == "True\n"
    assert str(tmp_path) not in others
