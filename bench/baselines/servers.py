"""Baseline servers that store nothing: Y1 in Python, Y4 in Bun."""

import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import requests

from testing.servers.ports import free_port
from testing.service import wait_until

_BUN_FOLDER = Path(__file__).with_name("bun")
_BUN = _BUN_FOLDER / "node_modules" / ".bin" / "bun"
_INSTALL_TIMEOUT_S = 300


class Server(NamedTuple):
    """The URL that receives events, and the processes whose CPU time counts."""

    url: str
    pids: tuple[int, ...]
    authorization: str = ""


@contextmanager
def bare_python() -> Generator[Server]:
    """Run Y1: uvicorn, a raw ASGI application, msgspec."""
    with _running([sys.executable, "-m", "bench.baselines.python_server"]) as server:
        yield server


@contextmanager
def bare_bun() -> Generator[Server | None]:
    """Run Y4: Bun, Elysia, zod. Yields None if its packages cannot be installed."""
    if not _install_bun():
        yield None
        return
    with _running([str(_BUN), str(_BUN_FOLDER / "server.ts")]) as server:
        yield server


def _install_bun() -> bool:
    """Install the locked packages with npm's own settings. Return whether Bun is available."""
    if not _BUN.exists() and shutil.which("npm") is not None:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["npm", "ci", "--no-audit", "--no-fund", "--silent"],
                cwd=_BUN_FOLDER,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_INSTALL_TIMEOUT_S,
                check=False,
            )
    return _BUN.exists()


@contextmanager
def _running(command: Sequence[str]) -> Generator[Server]:
    port = free_port()
    process = subprocess.Popen([*command, str(port)])
    url = f"http://127.0.0.1:{port}/track"
    try:
        wait_until(lambda: _answers(url), "the yardstick listens")
        yield Server(url, (process.pid,))
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return requests.post(url, json={"name": "x"}, timeout=5).status_code == 200
    except requests.ConnectionError:
        return False
