"""How a run of the crash test ends that this machine could not begin."""

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaos import __main__ as command
from chaos.run import Run


def run_nothing(run: Run, rounds: int, disks: Sequence[str]) -> None:
    """As where the servers of the store cannot be started."""
    del run, rounds, disks


def test_run_without_a_round_is_exit_code_2_and_an_empty_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    options = ["--store", "replicas", "--directory", str(tmp_path), "--json", str(report)]
    monkeypatch.setattr(sys, "argv", ["chaos", *options])
    monkeypatch.setattr(Run, "run", run_nothing)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = command.main()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    assert code == 2
    assert capsys.readouterr().out.endswith("no round was run\n")
    assert json.loads(report.read_text()) == {}
    assert list(tmp_path.iterdir()) == [report]
