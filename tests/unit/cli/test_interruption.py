"""How signals end a command, in a process of its own."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import __version__
from headrace.base.build import build_digest

PROGRAM = """
import asyncio, pathlib, signal, sys, time
from headrace.cli.interruption import ended_by_signals

def wait():
    print("ready", flush=True)
    {wait}

signal.signal(signal.SIGINT, {on_interrupt})
signal.signal(signal.SIGHUP, {on_hangup})
with ended_by_signals():
    file = pathlib.Path(sys.argv[1])
    file.touch()
    try:
        wait()
    finally:
        file.unlink()
"""
BLOCKING = "for _ in range(600): time.sleep(0.1)"
"""A signal that arrives just before a sleep is handled after it: so no sleep is long."""

DEFAULTS = {
    "wait": BLOCKING,
    "on_interrupt": "signal.default_int_handler",
    "on_hangup": "signal.SIG_DFL",
}


def started(file: Path, **texts: str) -> subprocess.Popen[str]:
    program = PROGRAM.format(**{**DEFAULTS, **texts})
    process = subprocess.Popen(
        (sys.executable, "-c", program, str(file)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "wait", [BLOCKING, "asyncio.run(asyncio.sleep(60))"], ids=["blocking", "asyncio"]
)
def test_signal_ends_a_command_with_its_cleanup_and_one_line(
    number: signal.Signals, wait: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    with started(file, wait=wait) as process:
        process.send_signal(number)
        _, printed = process.communicate(timeout=30)
    assert (process.returncode, printed, file.exists()) == (
        -number,
        "headrace: interrupted\n",
        False,
    )


@pytest.mark.parametrize(
    "wait", [BLOCKING, "asyncio.run(asyncio.sleep(60))"], ids=["blocking", "asyncio"]
)
def test_sigterm_cleans_up_where_a_shell_ignores_sigint(wait: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    with started(file, wait=wait, on_interrupt="signal.SIG_IGN") as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, printed = process.communicate(timeout=30)
    assert (process.returncode, printed, file.exists()) == (
        -signal.SIGTERM,
        "headrace: interrupted\n",
        False,
    )


def test_hangup_that_nohup_ignores_ends_nothing(tmp_path: Path) -> None:
    wait = "signal.raise_signal(signal.SIGHUP)"
    with started(tmp_path / "file", on_hangup="signal.SIG_IGN", wait=wait) as process:
        _, printed = process.communicate(timeout=30)
    assert (process.returncode, printed) == (0, "")


LOADING = """
import os, runpy, signal, sys

class Interruption:
    def find_spec(self, name, path, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, {on_interrupt})
sys.argv[1:] = ["--version"]
sys.meta_path.insert(0, Interruption())
runpy.run_module("headrace", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("on_interrupt", "code", "output"),
    [
        ("signal.default_int_handler", -signal.SIGINT, ""),
        ("signal.SIG_IGN", 0, f"headrace, version {__version__} (build {build_digest()})\n"),
    ],
    ids=["by default", "where a shell ignores it"],
)
def test_ctrl_c_ends_a_command_that_is_loading_without_a_traceback(
    on_interrupt: str, code: int, output: str
) -> None:
    program = LOADING.format(on_interrupt=on_interrupt)
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, output, "")


def test_ctrl_c_interrupts_a_command_that_loading_left_to_its_default_action(
    tmp_path: Path,
) -> None:
    file = tmp_path / "file"
    with started(file, on_interrupt="signal.SIG_DFL") as process:
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=30)
    assert (process.returncode, printed, file.exists()) == (
        -signal.SIGINT,
        "headrace: interrupted\n",
        False,
    )
