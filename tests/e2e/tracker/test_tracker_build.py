"""The files of the tracker that are served are those that its source builds."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.guides import blocks

CALLS_OF_A_PAGE = """
import type { Core } from "./index";

interface Order { product: string }

export const ofTracker = (core: Core): NonNullable<Window["headrace"]> => core;
export const ofPage = (order: Order): void => window.headrace?.track("order", order);
type Internal = "options" | "put" | "server" | "clean" | "changed" | "handle";
type Calls = Exclude<keyof Core, Internal>;
export const hasAll: Calls extends keyof HeadraceTracker ? true : false = true;
"""
PROJECT = Path(__file__).parents[3]
NPM_TIMEOUT_S = 300


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """A copy of the source of the tracker with its packages, and the served files beside it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    client = tmp_path / "clients" / "browser"
    no_modules = shutil.ignore_patterns("node_modules")
    shutil.copytree(PROJECT / "clients" / "browser", client, ignore=no_modules)
    served = Path("src", "headrace", "http", "tracker")
    shutil.copytree(PROJECT / served, tmp_path / served)
    run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], client)
    return client


@pytest.mark.node
@pytest.mark.slow
def test_served_files_equal_a_new_build_and_keep_their_limits(client: Path) -> None:
    run(["npm", "run", "check"], client)
    printed = run(["node", "build.mjs", "--check"], client)

    assert [line.partition(":")[0] for line in printed.splitlines()] == [
        "headrace-extras.js",
        "headrace.js",
        "headrace-details.js",
    ]


@pytest.mark.node
@pytest.mark.slow
def test_types_of_the_guide_have_all_calls_of_the_tracker(client: Path) -> None:
    [types] = blocks("browser.md", "ts")
    (client / "src" / "window.d.ts").write_text(types)
    (client / "src" / "page.ts").write_text(CALLS_OF_A_PAGE)

    run(["npm", "run", "check"], client)
