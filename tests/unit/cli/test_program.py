"""Texts name a command as the shell finds it, with the options that reach the same service."""

from pathlib import Path

import pytest

from headrace.base.settings import Settings, load_settings
from headrace.cli.program import command_line, program_name


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A program named headrace in a directory."""
    program = tmp_path / "bin" / "headrace"
    program.parent.mkdir()
    program.touch(mode=0o755)
    return program


def test_program_in_the_search_path_is_called_by_its_name(installed: Path) -> None:
    assert program_name(str(installed), str(installed.parent)) == "headrace"


def test_program_outside_the_search_path_is_called_by_its_path(installed: Path) -> None:
    assert program_name(str(installed), "/nowhere") == str(installed)


def test_another_program_of_that_name_is_not_meant(installed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "headrace"
    other.parent.mkdir()
    other.touch(mode=0o755)

    assert program_name(str(installed), str(other.parent)) == str(installed)


def test_module_that_was_started_by_an_interpreter_is_called_by_the_name_of_the_program() -> None:
    assert program_name("/srv/headrace/cli/main.py", "/nowhere") == "headrace"


def test_command_has_the_options_that_are_not_the_default() -> None:
    changed = load_settings({"data_dir": "my data", "port": "9000"})

    assert command_line("sign-in", settings=Settings()) == "headrace sign-in"
    assert (
        command_line("sign-in", settings=changed) == "headrace sign-in --data 'my data' --port 9000"
    )
