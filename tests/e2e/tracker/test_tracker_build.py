"""The files of the tracker that are served are those that its source builds."""

import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
NPM_TIMEOUT_S = 300


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.node
@pytest.mark.slow
def test_served_files_equal_a_new_build_and_keep_their_limits(tmp_path: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    client = tmp_path / "clients" / "browser"
    no_modules = shutil.ignore_patterns("node_modules")
    shutil.copytree(PROJECT / "clients" / "browser", client, ignore=no_modules)
    served = Path("src", "headrace", "http", "tracker")
    shutil.copytree(PROJECT / served, tmp_path / served)

    run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], client)
    run(["npm", "run", "check"], client)
    printed = run(["node", "build.mjs", "--check"], client)

    assert [line.partition(":")[0] for line in printed.splitlines()] == [
        "headrace-extras.js",
        "headrace.js",
        "headrace-details.js",
    ]
