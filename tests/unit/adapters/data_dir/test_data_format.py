"""The format of a data directory is checked before any other file in it is used."""

import contextlib
import json
import resource
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from headrace import __version__
from headrace.adapters.data_dir.format import (
    FIRST_FORMAT,
    FormatMarker,
    FormatMigration,
    ensure_format_marker,
    has_current_format,
    migrate_data_dir,
    read_format_marker,
)
from headrace.adapters.data_dir.lock import (
    SERVE_COMMAND,
    DataDirLocked,
    LockOwner,
    lock_data_dir,
    published_runtime,
)
from headrace.base.errors import OperatorError

OURS = FormatMarker(format=FIRST_FORMAT, written_by=__version__)


def recording_migration(name: str) -> FormatMigration:
    """Return a migration that writes the number of earlier ones to a file with its name."""

    def apply(root: Path) -> None:
        (root / name).write_text(str(len(list(root.glob("to-*")))))

    return FormatMigration(int(name.removeprefix("to-")), apply)


FORMAT_MIGRATIONS = (recording_migration("to-2"), recording_migration("to-3"))


def write_marker(root: Path, number: int, written_by: str = "0.0.1") -> None:
    (root / "headrace.json").write_text(json.dumps({"format": number, "written_by": written_by}))


def test_looking_at_the_format_of_a_new_directory_writes_nothing(tmp_path: Path) -> None:
    assert not has_current_format(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [ensure_format_marker, migrate_data_dir])
def test_new_directory_gets_a_marker_of_the_newest_format_and_no_migration(
    tmp_path: Path, write: Callable[[Path, tuple[FormatMigration, ...]], None]
) -> None:
    write(tmp_path, FORMAT_MIGRATIONS)
    assert has_current_format(tmp_path, FORMAT_MIGRATIONS)
    assert read_format_marker(tmp_path) == FormatMarker(format=3, written_by=__version__)
    assert [path.name for path in tmp_path.iterdir()] == ["headrace.json"]


def test_directory_without_a_format_marker_has_the_first_format(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    ensure_format_marker(tmp_path)
    assert not has_current_format(tmp_path)
    migrate_data_dir(tmp_path)
    assert read_format_marker(tmp_path) == OURS


def test_older_directory_is_migrated_step_by_step(tmp_path: Path) -> None:
    write_marker(tmp_path, 1)
    ensure_format_marker(tmp_path, FORMAT_MIGRATIONS)
    assert not has_current_format(tmp_path, FORMAT_MIGRATIONS)
    migrate_data_dir(tmp_path, FORMAT_MIGRATIONS)
    assert has_current_format(tmp_path, FORMAT_MIGRATIONS)
    assert read_format_marker(tmp_path) == FormatMarker(format=3, written_by=__version__)
    assert [(tmp_path / name).read_text() for name in ("to-2", "to-3")] == ["0", "1"]


def test_interrupted_migration_resumes(tmp_path: Path) -> None:
    def fail(_root: Path) -> None:
        raise OSError("full")

    write_marker(tmp_path, 1)
    with pytest.raises(OSError, match="full"):
        migrate_data_dir(tmp_path, (FORMAT_MIGRATIONS[0], FormatMigration(3, fail)))
    assert read_format_marker(tmp_path) == FormatMarker(format=2, written_by=__version__)
    migrate_data_dir(tmp_path, FORMAT_MIGRATIONS)
    assert (tmp_path / "to-3").read_text() == "1"


def test_completed_migrations_are_not_repeated(tmp_path: Path) -> None:
    write_marker(tmp_path, 2)
    migrate_data_dir(tmp_path, FORMAT_MIGRATIONS)
    assert sorted(path.name for path in tmp_path.glob("to-*")) == ["to-3"]


def test_format_marker_names_the_version_that_last_wrote_it(tmp_path: Path) -> None:
    write_marker(tmp_path, 1)
    migrate_data_dir(tmp_path)
    assert read_format_marker(tmp_path) == OURS


def test_newer_directory_is_rejected_unchanged(tmp_path: Path) -> None:
    write_marker(tmp_path, 2, "7.0.0")
    before = (tmp_path / "headrace.json").read_bytes()
    for read in (has_current_format, migrate_data_dir):
        with pytest.raises(OperatorError) as rejection:
            read(tmp_path)
        assert str(rejection.value) == (
            f"the data directory {tmp_path} was written by Headrace 7.0.0 in format 2; this is "
            f"Headrace {__version__}, which supports formats up to 1: use the newer version"
        )
    assert (tmp_path / "headrace.json").read_bytes() == before


@pytest.mark.parametrize("content", ["", "[]", '{"format": "x"}'], ids=["empty", "list", "text"])
def test_damaged_format_marker_is_rejected(tmp_path: Path, content: str) -> None:
    (tmp_path / "headrace.json").write_text(content)
    with pytest.raises(OperatorError, match=r"^cannot decode .*/headrace\.json: "):
        has_current_format(tmp_path)


def test_unfinished_restore_is_rejected(tmp_path: Path) -> None:
    write_marker(tmp_path, 1)
    (tmp_path / "restore-unfinished").touch()
    for read in (has_current_format, migrate_data_dir):
        with pytest.raises(OperatorError, match="was interrupted: empty the directory and restore"):
            read(tmp_path)


def test_locked_directory_names_the_lock_owner(tmp_path: Path) -> None:
    with lock_data_dir(tmp_path, SERVE_COMMAND) as publish_runtime_dir:
        publish_runtime_dir(Path("/run/x"))
        with pytest.raises(DataDirLocked) as rejection, lock_data_dir(tmp_path, "headrace verify"):
            pass
    assert str(rejection.value) == (
        f"the data directory {tmp_path} is in use by another Headrace service"
    )
    assert rejection.value.owner == LockOwner(SERVE_COMMAND, "/run/x")


@contextlib.contextmanager
def unwritable_files() -> Generator[None]:
    """Let no file of this process be written, as on a full disk that overwrites nothing."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def owner_of(root: Path) -> LockOwner:
    with pytest.raises(DataDirLocked) as rejection, lock_data_dir(root, "headrace verify"):
        pass
    return rejection.value.owner


def test_runtime_directory_is_published_as_soon_as_the_lock_file_can_be_written(
    tmp_path: Path,
) -> None:
    with lock_data_dir(tmp_path, SERVE_COMMAND) as publish_runtime_dir:
        assert publish_runtime_dir(Path("/run/earlier"))
    with contextlib.ExitStack() as stack:
        with unwritable_files():
            publish_runtime_dir = stack.enter_context(lock_data_dir(tmp_path, SERVE_COMMAND))
            assert not publish_runtime_dir(Path("/run/x"))
        assert owner_of(tmp_path) == LockOwner(SERVE_COMMAND, "/run/earlier")
        assert publish_runtime_dir(Path("/run/x"))
        assert owner_of(tmp_path) == LockOwner(SERVE_COMMAND, "/run/x")


def test_runtime_directory_of_a_service_is_the_published_one(tmp_path: Path) -> None:
    assert published_runtime(LockOwner(SERVE_COMMAND, str(tmp_path))) == tmp_path


@pytest.mark.parametrize("runtime", ["", "missing"], ids=["none", "of an earlier service"])
def test_runtime_directory_that_is_not_published_is_an_error(tmp_path: Path, runtime: str) -> None:
    owner = LockOwner(SERVE_COMMAND, runtime and str(tmp_path / runtime))
    with pytest.raises(OperatorError) as refusal:
        published_runtime(owner)
    assert str(refusal.value) == (
        "cannot reach the service: it has not published where its socket is; it is starting, or "
        "its disk is full"
    )


def test_released_directory_can_be_locked_again(tmp_path: Path) -> None:
    with lock_data_dir(tmp_path, "headrace verify"):
        pass
    with lock_data_dir(tmp_path, SERVE_COMMAND):
        pass
