"""What chDB leaves to the system is on disk before anything counts on it: seen with `strace`."""

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import pytest

from headrace.adapters.store.chdb.files.metadata_copy import copy_path
from headrace.adapters.store.chdb.files.write_order import OrderWrites
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.base.errors import StoreUnavailable
from headrace.model.catalog import EVENTS
from testing.chdb import FreshStore, arrow_stream

PROGRAM = """
import sys
from pathlib import Path
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.part_lifetimes import ChdbPartLifetimes
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.ddl import MIGRATIONS, Migration
from headrace.adapters.store.dialect.statements import AlterTable
from headrace.base.logs import get_logger
chdb = ChdbInstance(Path(sys.argv[1]), log=get_logger())
chdb.open()
change = "MODIFY COLUMN `no_such` String"
if sys.argv[2] != "fail":
    change = "ADD COLUMN IF NOT EXISTS `later` String"
change = AlterTable(name="events", change=change)
newer = Migration(MIGRATIONS[-1].version + 1, (change,))
writer = ChdbWriter(chdb, migrations=MIGRATIONS + (newer,) * (sys.argv[2] in ("migrate", "fail")))
if sys.argv[2] != "shorten":
    writer.prepare()
else:
    lifetimes = ChdbPartLifetimes(chdb, may_shorten=True)
    lifetimes.shorten()
    lifetimes.restore()
writer.close()
chdb.close()
"""
NAMING = ("mkdir", "symlink", "rename", "renameat2")
TRACED = ",".join((*NAMING, "fsync", "fdatasync"))
_NAMED = re.compile(rf'(?:{"|".join(NAMING)})\(.*"([^"]+?)/?"[^"]*\) = 0')
_SYNCED = re.compile(r"f(?:data)?sync\(\d+<([^>]+)>")


def unsynced_names(store: Path, lines: Iterable[str]) -> set[str]:
    """Return the names in a store whose directory was not synced after they were created."""
    unsynced: set[str] = set()
    for line in lines:
        if synced := _SYNCED.search(line):
            unsynced = {n for n in unsynced if str(PurePosixPath(n).parent) != synced[1]}
        elif (named := _NAMED.search(line)) and named[1].startswith(str(store)):
            unsynced.add(named[1])
    return {name for name in unsynced if Path(name).exists()}


def traced(store: Path, what: str) -> list[str]:
    """Return the lines that `strace` writes while a process does something with a store."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = store.with_name("trace")
    subprocess.run(
        [
            *("strace", "-f", "-y", "-e", f"trace={TRACED}", "-o", str(trace)),
            *(sys.executable, "-c", PROGRAM, str(store), what),
        ],
        check=True,
        timeout=120,
        capture_output=True,
    )
    lines = trace.read_text().splitlines()
    assert any(str(store) in line for line in lines)
    return lines


def is_definition(name: str) -> bool:
    return name.endswith(".sql")


def run(store: Path, what: str) -> tuple[int, str]:
    """Do something with a store in a process; return its exit code and last line of errors."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(store), what],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, "".join(done.stderr.splitlines(keepends=True)[-1:])


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A store that was prepared and closed."""
    store = tmp_path / "store"
    assert run(store, "prepare")[0] == 0
    return store


@pytest.mark.slow
def test_every_name_in_a_prepared_store_is_synced(tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert unsynced_names(store, traced(store, "prepare")) == set()


@pytest.mark.slow
def test_a_migration_is_recorded_when_what_it_changed_is_synced_and_copied(prepared: Path) -> None:
    lines = traced(prepared, "migrate")

    versions = (prepared / "data" / "headrace" / "schema_version").resolve()
    recorded = next(
        index
        for index, line in enumerate(lines)
        if (named := _NAMED.search(line)) and named[1].startswith(f"{versions}/all_2_2_0")
    )
    before = lines[:recorded]
    renamed = [found[1] for line in before if (found := _NAMED.search(line))]
    (changed,) = {name for name in renamed if is_definition(name)}
    assert PurePosixPath(changed).name == "events.sql"
    assert unsynced_names(prepared, before) == set()
    assert str(copy_path(prepared)) in renamed
    assert "`later` String" in copy_path(prepared).read_text()


@pytest.mark.slow
def test_a_store_of_a_version_without_a_copy_opens_after_a_full_disk_ended_its_migration(
    prepared: Path,
) -> None:
    copy_path(prepared).unlink()
    code, error = run(prepared, "fail")
    assert (code, error.startswith("headrace.base.errors.StoreUnavailable: ")) == (1, True), error
    (definition,) = prepared.glob("store/*/*/events.sql")
    definition.write_bytes(b"")  # chDB begins to write the new definition over the old one
    code, error = run(prepared, "migrate")
    assert code == 0, error
    assert "`later` String" in definition.read_text()


@pytest.mark.slow
def test_settings_of_tables_that_a_command_changes_are_synced(prepared: Path) -> None:
    names = unsynced_names(prepared, traced(prepared, "shorten"))
    assert set(filter(is_definition, names)) == set()


def test_a_batch_counts_as_stored_after_its_writes_are_ordered(chdb_store: FreshStore) -> None:
    engine, rows = chdb_store.engine, list[int]()

    def order_of_writes(directory: Path) -> OrderWrites:
        assert directory == engine.directory
        return lambda: rows.append(chdb_store.rows("SELECT count() FROM events")[0][0])

    writer = ChdbWriter(engine, database=chdb_store.database, order_of_writes=order_of_writes)
    for number in range(2):
        batch = arrow_stream(EVENTS, [{"website_id": "web_a", "time": number}])
        writer.insert(EVENTS, batch, token=f"ordered {number}")
    writer.close()
    assert rows == [1, 2]


def test_a_batch_whose_writes_cannot_be_ordered_is_not_stored_yet(chdb_store: FreshStore) -> None:
    def order_of_writes(_directory: Path) -> OrderWrites:
        def fail() -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        return fail

    writer = ChdbWriter(
        chdb_store.engine, database=chdb_store.database, order_of_writes=order_of_writes
    )
    batch = arrow_stream(EVENTS, [{"website_id": "web_a"}])
    with pytest.raises(StoreUnavailable, match="cannot sync the store"):
        writer.insert(EVENTS, batch, token="unordered")
    writer.close()
