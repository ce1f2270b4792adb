"""The progress line of a long command."""

import os

import pytest

from headrace.cli.output import format_bytes
from headrace.cli.progress import ProgressLine


def narrow(descriptor: int) -> os.terminal_size:
    del descriptor
    return os.terminal_size((24, 10))


def show_thirds(line: ProgressLine) -> None:
    with line:
        for done in range(4):
            line.show(done, 3)


def test_terminal_gets_one_line_that_is_removed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show_thirds(ProgressLine("Copying"))
    error = capsys.readouterr().err
    assert "\n" not in error
    assert [part.strip() for part in error.split("\r")] == [
        "",
        "Copying: 0 of 3 (0 %)",
        "Copying: 1 of 3 (33 %)",
        "Copying: 2 of 3 (66 %)",
        "Copying: 3 of 3 (100 %)",
        "",
        "",
    ]


def test_line_is_as_long_as_a_narrow_terminal_does_not_wrap(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.fileno", lambda: 2)
    monkeypatch.setattr("os.get_terminal_size", narrow)
    show_thirds(ProgressLine("Copying"))
    assert capsys.readouterr().err.split("\r") == [
        "",
        "Copying: 0 of 3 (0 %)  ",
        "Copying: 1 of 3 (33 %) ",
        "Copying: 2 of 3 (66 %) ",
        "Copying: 3 of 3 (100 %)",
        " " * 23,
        "",
    ]


def test_file_gets_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine("Copying", is_printed_to_files=True) as line:
        for done in range(101):
            line.show(done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"Copying: {done} of 100 ({done} %)" for done in range(0, 101, 10)]


def test_file_gets_nothing_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    show_thirds(ProgressLine("Backing up"))
    assert capsys.readouterr() == ("", "")


def test_nothing_to_do_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLine("Copying", is_printed_to_files=True).show(0, 0)
    assert capsys.readouterr().err == "Copying: 0 of 0 (100 %)\n"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (5 * 1024**4, "5.0 TiB"),
        (2000 * 1024**4, "2000.0 TiB"),
    ],
)
def test_bytes_are_printed_in_binary_units(size: int, text: str) -> None:
    assert format_bytes(size) == text
