"""The format of a data directory is looked at before anything in it is touched."""

import json
from pathlib import Path

import pytest

from headrace import __version__
from headrace.adapters.data_dir.format import (
    FIRST_FORMAT,
    Stamp,
    Step,
    is_current,
    migrate,
    read_stamp,
)
from headrace.adapters.data_dir.lock import SERVE, DataHeld, Holder, hold_data
from headrace.base.errors import OperatorError

OURS = Stamp(format=FIRST_FORMAT, written_by=__version__)


def marking(name: str) -> Step:
    """Return a step that leaves a file which tells in which order the steps were run."""

    def apply(root: Path) -> None:
        (root / name).write_text(str(len(list(root.glob("to-*")))))

    return Step(int(name.removeprefix("to-")), apply)


STEPS = (marking("to-2"), marking("to-3"))


def stamp(root: Path, number: int, written_by: str = "0.0.1") -> None:
    (root / "headrace.json").write_text(json.dumps({"format": number, "written_by": written_by}))


def test_new_directory_is_current_and_gets_its_stamp(tmp_path: Path) -> None:
    assert is_current(tmp_path)
    assert read_stamp(tmp_path) == OURS
    assert [path.name for path in tmp_path.iterdir()] == ["headrace.json"]


def test_directory_older_than_the_stamp_is_of_the_first_format(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    assert not is_current(tmp_path)
    migrate(tmp_path)
    assert read_stamp(tmp_path) == OURS


def test_older_directory_is_migrated_step_by_step(tmp_path: Path) -> None:
    stamp(tmp_path, 1)
    assert not is_current(tmp_path, STEPS)
    migrate(tmp_path, STEPS)
    assert is_current(tmp_path, STEPS)
    assert read_stamp(tmp_path) == Stamp(format=3, written_by=__version__)
    assert [(tmp_path / name).read_text() for name in ("to-2", "to-3")] == ["0", "1"]


def test_broken_off_migration_goes_on_where_it_was(tmp_path: Path) -> None:
    def fail(_root: Path) -> None:
        raise OSError("full")

    stamp(tmp_path, 1)
    with pytest.raises(OSError, match="full"):
        migrate(tmp_path, (STEPS[0], Step(3, fail)))
    assert read_stamp(tmp_path) == Stamp(format=2, written_by=__version__)
    migrate(tmp_path, STEPS)
    assert (tmp_path / "to-3").read_text() == "1"


def test_steps_that_were_done_are_not_done_again(tmp_path: Path) -> None:
    stamp(tmp_path, 2)
    migrate(tmp_path, STEPS)
    assert sorted(path.name for path in tmp_path.glob("to-*")) == ["to-3"]


def test_stamp_names_the_version_that_used_it_last(tmp_path: Path) -> None:
    stamp(tmp_path, 1)
    migrate(tmp_path)
    assert read_stamp(tmp_path) == OURS


def test_newer_directory_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    stamp(tmp_path, 2, "7.0.0")
    before = (tmp_path / "headrace.json").read_bytes()
    for look in (is_current, migrate):
        with pytest.raises(OperatorError) as refusal:
            look(tmp_path)
        assert str(refusal.value) == (
            f"the data directory {tmp_path} was written by Headrace 7.0.0 in format 2 and this is "
            f"Headrace {__version__}, which knows formats up to 1: use the newer version"
        )
    assert (tmp_path / "headrace.json").read_bytes() == before


@pytest.mark.parametrize("content", ["", "[]", '{"format": "x"}'], ids=["empty", "list", "text"])
def test_damaged_stamp_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "headrace.json").write_text(content)
    with pytest.raises(OperatorError, match="does not tell the format"):
        is_current(tmp_path)


def test_rest_of_a_restore_is_refused(tmp_path: Path) -> None:
    stamp(tmp_path, 1)
    (tmp_path / "restore-unfinished").touch()
    with pytest.raises(OperatorError, match="was broken off: empty the directory and restore"):
        is_current(tmp_path)


def test_held_directory_tells_by_whom(tmp_path: Path) -> None:
    with hold_data(tmp_path, SERVE) as tell_runtime:
        tell_runtime(Path("/run/x"))
        with pytest.raises(DataHeld) as refusal, hold_data(tmp_path, "headrace verify"):
            pass
    assert str(refusal.value) == (
        f"the data directory {tmp_path} is in use by another Headrace service"
    )
    assert refusal.value.holder == Holder(SERVE, "/run/x")


def test_released_directory_can_be_held_again(tmp_path: Path) -> None:
    with hold_data(tmp_path, "headrace verify"):
        pass
    with hold_data(tmp_path, SERVE):
        pass
