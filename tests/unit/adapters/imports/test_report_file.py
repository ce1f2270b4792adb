"""The report file of an import."""

import json
import os
from pathlib import Path

import pytest

from headrace.adapters.imports.report_file import ReportFile
from headrace.base.errors import OperatorError
from headrace.model.imports import RefusedLine


def write_report(path: Path, *, lines: int) -> None:
    with ReportFile(path) as report:
        for number in range(lines):
            report.add(RefusedLine("a.ndjson", number, "invalid JSON"))


@pytest.mark.parametrize("lines", [1, 10_000], ids=["at its end", "on the way"])
def test_report_on_a_full_disk_is_named(lines: int) -> None:
    with pytest.raises(OperatorError) as caught:
        write_report(Path("/dev/full"), lines=lines)
    assert str(caught.value) == "cannot write /dev/full: no space left on device"


def test_report_names_a_file_in_any_encoding(tmp_path: Path) -> None:
    path, name = tmp_path / "report", os.fsdecode(b"\xff.ndjson")
    with ReportFile(path) as report:
        report.add(RefusedLine(name, 1, "invalid JSON"))
    assert json.loads(path.read_text()) == {"file": name, "line": 1, "reason": "invalid JSON"}
