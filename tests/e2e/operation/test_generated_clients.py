"""Clients generated from the OpenAPI document compile and work against the service."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testing.service import Service

PROJECT = Path(__file__).parents[3]
CLIENTS = PROJECT / "clients" / "generated"
DOCUMENT = PROJECT / "docs" / "reference" / "openapi.json"
TIMEOUT_S = 300

RETURNED = {
    "sent": 2,
    "rows": [{"event_name": "signup", "events": 1}],
    "keys": ["plan", "value"],
    "values": 2,
    "refused": "INVALID_COLUMN",
    "administered": {
        "made": ["Shop", 30],
        "renamed": "Store",
        "listed": ["Store"],
        "secret": True,
        "revoked": [["read:data"], True],
        "deleted": True,
        "change": ["website.delete"],
        "found": 2,
        "erased": ["anonymousId", 2, True],
        "shown": True,
        "receipts": 1,
    },
}
"""What both clients return: two events, one of them with a plan, and a query that is refused; a
website that is deleted in the end, a key that is revoked, and an erasure of both events."""

RUN_TYPESCRIPT = """
import { administer, run } from "./built/client.js";
const given = process.argv.slice(2);
console.log(JSON.stringify({ ...(await run(...given)), administered: await administer(...given) }));
"""

pytestmark = pytest.mark.slow


def run(command: list[str | Path], folder: Path, **variables: str) -> str:
    """Run a command in a folder and return what it printed."""
    done = attempt(command, folder, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def attempt(
    command: list[str | Path], folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, **variables},
        check=False,
    )


def install(command: list[str | Path], folder: Path) -> None:
    """Install pinned packages; without a network skip the test, but not in CI."""
    done = attempt(command, folder)
    if done.returncode != 0 and "CI" not in os.environ:
        pytest.skip(f"the generator cannot be installed: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the checked clients with the document beside them."""
    copied = tmp_path / "generated"
    shutil.copytree(CLIENTS, copied, ignore=shutil.ignore_patterns("node_modules", "built"))
    shutil.copy(DOCUMENT, copied)
    return copied


def arguments(service: Service) -> list[str]:
    """Return the address of the service, a key and a new website."""
    key = service.key("track:events", "read:data", "manage:data", "manage:config")
    return [service.url, key.secret, service.website()]


@pytest.mark.node
@pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None,
    reason="node and npm are not installed",
)
def test_client_of_openapi_typescript_compiles_and_works(service: Service, folder: Path) -> None:
    install(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
    run(["npm", "run", "generate"], folder)
    run(["npm", "run", "build"], folder)
    (folder / "run.mjs").write_text(RUN_TYPESCRIPT)

    printed = run(["node", "run.mjs", *arguments(service)], folder)

    assert json.loads(printed) == RETURNED


def test_client_of_openapi_python_client_compiles_and_works(service: Service, folder: Path) -> None:
    run([sys.executable, "-m", "venv", "venv"], folder)
    programs = folder / "venv" / "bin"
    python = programs / "python"
    install(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", "requirements.txt"], folder
    )
    generate: list[str | Path] = [
        *(programs / "openapi-python-client", "generate", "--fail-on-warning"),
        *("--path", "openapi.json", "--config", "openapi-python-client.yaml"),
        *("--meta", "none", "--output-path", "headrace_client"),
    ]
    run(generate, folder, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    run([python, "-m", "compileall", "-q", "headrace_client"], folder)
    strict = ["--strict", "--follow-imports=silent", f"--python-executable={python}"]
    run([sys.executable, "-m", "mypy", *strict, "--config-file=", "client.py"], folder)

    printed = run([python, "client.py", *arguments(service)], folder, NO_PROXY="*")

    assert json.loads(printed) == RETURNED
