"""The wheel and the sdist of the Python client are complete, and need httpx and msgspec alone."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from headrace_client import __version__
from testing.archives import extract_all

PROJECT = Path(__file__).parents[2]
CLIENT = PROJECT / "clients" / "python"
DIST = PROJECT / "dist"
WHEEL = DIST / f"headrace_client-{__version__}-py3-none-any.whl"
SDIST = DIST / f"headrace_client-{__version__}.tar.gz"
LIBRARIES = ("anyio", "certifi", "h11", "httpcore", "httpx", "idna", "msgspec", "typing-extensions")
"""What httpx and msgspec depend on, with themselves."""

PROGRAM = """
from headrace_client import Headrace
from headrace_client.testing import FakeHeadrace

with FakeHeadrace() as server, Headrace(server.url, "key", outbox="outbox.sqlite") as client:
    client.track("installed")
    assert client.flush()
    print(server.event_names())
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "HEADRACE_TEST_PACKAGE" not in os.environ, reason="`make package` builds what this tests"
    ),
]


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def locked(names: tuple[str, ...]) -> str:
    """Return the lines of the lock that pin the named packages."""
    lock = (PROJECT / "requirements" / "dev.lock").read_text()
    pins = re.split(r"\n(?=[a-z0-9])", lock)
    return "\n".join(pin for pin in pins if pin.split("==")[0] in names)


def test_wheel_contains_every_file_of_the_client_and_the_license() -> None:
    tracked = run(
        "git", "ls-files", "--cached", "--others", "--exclude-standard", "src", cwd=CLIENT
    ).splitlines()
    metadata = f"headrace_client-{__version__}.dist-info"

    names = set(zipfile.ZipFile(WHEEL).namelist())

    assert {name for name in names if not name.startswith(metadata)} == {
        name.removeprefix("src/") for name in tracked
    }
    assert "headrace_client/py.typed" in names
    assert f"{metadata}/licenses/LICENSE" in names


def test_sdist_of_the_client_builds_the_same_wheel(tmp_path: Path) -> None:
    with tarfile.open(SDIST) as archive:
        extract_all(archive, tmp_path)
    source = tmp_path / f"headrace_client-{__version__}"

    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=source)

    built = zipfile.ZipFile(tmp_path / WHEEL.name)
    expected = zipfile.ZipFile(WHEEL)
    assert {name: built.read(name) for name in built.namelist()} == {
        name: expected.read(name) for name in expected.namelist()
    }


def test_client_works_where_only_its_libraries_are_installed(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = str(environment / "bin" / "python")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    (tmp_path / "libraries.lock").write_text(locked(LIBRARIES))
    run(*pip, "--require-hashes", "-r", str(tmp_path / "libraries.lock"))
    run(*pip, "--no-index", str(WHEEL))

    assert run(python, "-c", PROGRAM, cwd=tmp_path) == "['installed']\n"
