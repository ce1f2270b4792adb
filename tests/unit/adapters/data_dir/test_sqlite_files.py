"""Files beside a database: how their names end, and what a power cut may have put under them."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.adapters.data_dir import sqlite_files
from headrace.adapters.data_dir.sqlite_files import close_durably, separate_sqlite_files
from headrace.base.errors import OperatorError
from testing.open_files import nameless

ROW = ("kept",)
TRY_TO_LOCK = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0).execute("BEGIN IMMEDIATE")
"""


def opened(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    return connection


def written(database: Path) -> sqlite3.Connection:
    connection = opened(database)
    connection.execute("CREATE TABLE t (text)")
    connection.execute("INSERT INTO t VALUES (?)", ROW)
    return connection


def rows(database: Path) -> list[tuple[str]]:
    connection = opened(database)
    try:
        return connection.execute("SELECT text FROM t").fetchall()
    finally:
        connection.close()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of a data directory, with a row and no other files."""
    path = tmp_path / "repeats.sqlite"
    written(path).close()
    return path


def test_removed_files_are_open_until_their_names_are_gone_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "repeats.sqlite"
    connection = written(database)
    at_sync: list[tuple[set[str], set[str]]] = []

    def sync(path: Path) -> None:
        at_sync.append(({file.name for file in path.iterdir()}, nameless(path)))

    monkeypatch.setattr(sqlite_files, "sync_directory", sync)
    close_durably(connection, database)
    assert at_sync == [({database.name}, {"repeats.sqlite-wal", "repeats.sqlite-shm"})]
    assert nameless(tmp_path) == set()
    assert rows(database) == [ROW]


def test_closing_keeps_the_locks_of_another_connection(database: Path) -> None:
    other = opened(database)
    other.execute("BEGIN IMMEDIATE")
    close_durably(opened(database), database)
    # Locks are those of a process.
    tried = subprocess.run(
        [sys.executable, "-c", TRY_TO_LOCK, str(database)], capture_output=True, check=False
    )
    assert tried.stderr.endswith(b"sqlite3.OperationalError: database is locked\n")
    other.close()


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_directory_under_the_name_of_a_file_is_moved_to_the_damaged_files(
    database: Path, suffix: str
) -> None:
    for number in (1, 2):
        part = database.with_name(f"{database.name}{suffix}")
        part.mkdir()
        (part / "data.bin").write_text(f"rows {number}")
        separate_sqlite_files(database.parent)
        assert rows(database) == [ROW]
    moved = sorted((database.parent / "damaged").glob("*/data.bin"))
    assert [(file.parent.name, file.read_text()) for file in moved] == [
        (f"repeats.sqlite{suffix}.1", "rows 1"),
        (f"repeats.sqlite{suffix}.2", "rows 2"),
    ]


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_file_that_belongs_to_another_name_is_not_written_to(database: Path, suffix: str) -> None:
    owned = database.with_name("columns.txt")
    owned.write_text("columns of a part")
    os.link(owned, database.with_name(f"{database.name}{suffix}"))
    separate_sqlite_files(database.parent)
    written(other := database.with_name("ledger.sqlite")).close()
    assert rows(database) == [ROW]
    connection = opened(database)
    connection.execute("INSERT INTO t VALUES ('more')")
    connection.close()
    assert owned.read_text() == "columns of a part"
    assert rows(other) == [ROW]


def test_a_log_with_a_second_name_keeps_its_rows(tmp_path: Path) -> None:
    database = tmp_path / "ledger.sqlite"
    connection = written(database)
    wal = tmp_path / "ledger.sqlite-wal"
    (tmp_path / "copy").mkdir()
    for file in (database, wal):  # what a killed process leaves
        (tmp_path / "copy" / file.name).write_bytes(file.read_bytes())
    os.link(tmp_path / "copy" / wal.name, tmp_path / "copy" / "other")
    separate_sqlite_files(tmp_path / "copy")
    assert rows(tmp_path / "copy" / "ledger.sqlite") == [ROW]
    connection.close()


def test_files_of_sqlite_and_other_entries_stay(database: Path) -> None:
    connection = opened(database)
    (database.parent / "store").mkdir()
    before = {file.name: file.stat().st_ino for file in database.parent.iterdir()}
    separate_sqlite_files(database.parent)
    assert {file.name: file.stat().st_ino for file in database.parent.iterdir()} == before
    connection.close()


def test_a_file_that_cannot_be_separated_is_reported(database: Path) -> None:
    wal = database.with_name(f"{database.name}-wal")
    wal.mkdir()
    (database.parent / "damaged").write_text("a file")
    with pytest.raises(OperatorError, match=f"^cannot separate {wal}: "):
        separate_sqlite_files(database.parent)
