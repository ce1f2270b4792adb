"""`make serve`, the first command of the README, with stand-ins for Python and for the program."""

import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from testing.service import HEADRACE, clean_environment, run_to_end

PROJECT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make_serve(
    checkout: Path, *variables: str, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `make serve` in a directory with our Makefile."""
    shutil.copy(PROJECT / "Makefile", checkout)
    environment = clean_environment(settings)
    unset = {"DATA", "MAKEFLAGS", "SERVE_ARGS"} - set(settings or ())
    return subprocess.run(
        ["make", "--no-print-directory", "serve", *variables],
        cwd=checkout,
        capture_output=True,
        text=True,
        env={name: value for name, value in environment.items() if name not in unset},
        timeout=60,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which everything is installed; its program prints each argument."""
    programs = tmp_path / "a checkout" / ".venv" / "bin"
    programs.mkdir(parents=True)
    root = programs.parents[1]
    for name in ("requirements/runtime.lock", "pyproject.toml", ".venv/bin/python"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    (programs.parent / ".runtime").touch()
    (programs / "headrace").write_text('#!/bin/sh\nprintf "<%s>" "$@"\necho\n')
    (programs / "headrace").chmod(0o755)
    return root


def test_data_directory_is_that_of_the_environment(checkout: Path) -> None:
    done = make_serve(checkout, settings={"HEADRACE_DATA_DIR": "/srv/headrace"})
    assert (done.stdout, done.stderr) == ("<init><--check-port>\n<serve>\n", "")


def test_data_directory_may_have_a_blank(checkout: Path) -> None:
    done = make_serve(checkout, "DATA=my data", "SERVE_ARGS=--port 9000")
    options = "<--data><my data><--port><9000>"
    assert (done.stdout, done.stderr) == (
        f"<init><--check-port>{options}\n<serve>{options}\n",
        "",
    )


def test_variable_data_of_the_environment_is_ignored_and_named(checkout: Path) -> None:
    done = make_serve(checkout, settings={"DATA": "/srv/other", "HEADRACE_DATA_DIR": "/srv/own"})
    assert done.stdout == "<init><--check-port>\n<serve>\n"
    assert done.stderr == (
        "The variable DATA of the environment has no effect; set HEADRACE_DATA_DIR or call make "
        "serve DATA=DIR\n"
    )


def test_environment_without_pip_is_made_again(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\n[ "$1" = -c ] && exit 0\n'
        'mkdir -p "$3/bin"; touch "$3/bin/python"; echo "install python3-venv"; exit 1\n'
    )
    python.chmod(0o755)
    for name in ("requirements/runtime.lock", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    outputs = [make_serve(tmp_path, f"PYTHON={python}") for _ in range(2)]
    assert [done.stdout.count("install python3-venv\n") for done in outputs] == [1, 1]


def test_first_start_on_a_port_in_use_creates_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_to_end(
            [HEADRACE, "init", "--check-port", "--data", str(data), "--port", str(port)]
        )
    sentence = (
        f"headrace: cannot listen on 127.0.0.1 port {port}: address already in use; "
        "choose others with --host and --port, or HEADRACE_HOST and HEADRACE_PORT\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
    assert not data.exists()
