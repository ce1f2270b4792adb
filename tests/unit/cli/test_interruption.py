"""How signals end a command, in a process of its own."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
DEFAULTS = {
    "wait": "time.sleep(60)",
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
    "wait", ["time.sleep(60)", "asyncio.run(asyncio.sleep(60))"], ids=["blocking", "asyncio"]
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
    "wait", ["time.sleep(60)", "asyncio.run(asyncio.sleep(60))"], ids=["blocking", "asyncio"]
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
