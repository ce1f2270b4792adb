"""The modules of the page have right types, and its libraries are those of npm, unchanged."""

import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
NPM_TIMEOUT_S = 300


def run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.node
@pytest.mark.slow
def test_types_properties_and_vendored_files_of_the_page_are_right(tmp_path: Path) -> None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    client = tmp_path / "clients" / "page"
    no_modules = shutil.ignore_patterns("node_modules")
    shutil.copytree(PROJECT / "clients" / "page", client, ignore=no_modules)
    served = Path("src", "headrace", "http", "page")
    shutil.copytree(PROJECT / served, tmp_path / served)
    shutil.copytree(PROJECT / "tests" / "golden", tmp_path / "tests" / "golden")
    document = Path("docs", "reference", "openapi.json")
    (tmp_path / document).parent.mkdir(parents=True)
    shutil.copy(PROJECT / document, tmp_path / document)  # the types of calls are made of it

    run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], client)

    run(["npm", "run", "check"], client)
    run(["npm", "test"], client)
    run(["node", "vendor.mjs", "--check"], client)
