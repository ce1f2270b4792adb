"""Metadata of a real store with rows is lost; the store is opened again in a process of its own."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.store.chdb.files.metadata_copy import copy_path

PROGRAM = """
import json
import sys
from pathlib import Path
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.table_identity import read_identities, table_directories
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.base.logs import configure_logging, get_logger
from headrace.model.storage import STORAGE_TABLES
from testing.chdb import arrow_stream

configure_logging("info", process="test")
chdb = ChdbInstance(Path(sys.argv[1]), log=get_logger())
chdb.open()
writer = ChdbWriter(chdb)
writer.prepare()
for table in STORAGE_TABLES.values() if sys.argv[2:] else ():
    for number in range(3):
        row = {"id": number.to_bytes(16), "session_id": f"s{number}"}
        writer.insert(table, arrow_stream(table, [row]), token=f"{table.name}-{number}")
session = chdb.session()
select = session.execute
print(json.dumps({
    "rows": {
        name: select(f"SELECT hex(id), session_id FROM {name} ORDER BY ALL")
        for name in STORAGE_TABLES
    },
    "versions": select("SELECT version FROM schema_version ORDER BY ALL"),
    "sessions": select("SELECT count() FROM visits"),
    "identities": read_identities(table_directories(chdb)),
}))
session.close()
writer.close()
chdb.close()
"""
DATABASE_FILE = "metadata/headrace.sql"
TABLES = ("errors", "events", "performance", "schema_version")


def open_store(store: Path, *arguments: str) -> tuple[dict[str, Any], list[str] | None]:
    """Open and prepare a store; return what is in it, and the paths that were restored."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(store), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    restored = [one["paths"] for one in events if one["event_name"] == "store_metadata_restored"]
    return json.loads(done.stdout.splitlines()[-1]), restored[0] if restored else None


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A closed store with three rows in each table, and what is in it."""
    store = tmp_path_factory.mktemp("filled") / "store"
    content, _ = open_store(store, "fill")
    assert {name: len(rows) for name, rows in content["rows"].items()} == dict.fromkeys(
        ("errors", "events", "performance"), 3
    )
    return store, content


def database_directory(store: Path) -> Path:
    uuid: str = re.findall(r"UUID '(\S+)'", (store / DATABASE_FILE).read_text())[0]
    return store / "store" / uuid[:3] / uuid


def table_directory(store: Path, table: str) -> Path:
    return (store / "data" / "headrace" / table).resolve()


def damage_all_files(change: Callable[[Path], Any]) -> Callable[[Path], None]:
    def damage(store: Path) -> None:
        for file in database_directory(store).glob("*.sql"):
            change(file)
        change(store / DATABASE_FILE)

    return damage


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def drop_metadata(store: Path) -> None:
    """Do what the check of a file system without a journal did after a power cut."""
    shutil.rmtree(store / "metadata")


def drop_database(store: Path) -> None:
    shutil.rmtree(database_directory(store))
    shutil.rmtree(store / "metadata")


def drop_links(store: Path) -> None:
    (store / "metadata" / "headrace").unlink()
    shutil.rmtree(store / "data")


def remove_file_of(table: str) -> Callable[[Path], None]:
    return lambda store: (database_directory(store) / f"{table}.sql").unlink()


DAMAGES: Mapping[str, Callable[[Path], None]] = {
    **{f"the file of {table} is missing": remove_file_of(table) for table in TABLES},
    "the file of the view is missing": remove_file_of("visits"),
    "the file of the database is missing": lambda store: (store / DATABASE_FILE).unlink(),
    "all files are missing": damage_all_files(lambda file: file.unlink()),
    "all files are empty": damage_all_files(lambda file: file.write_bytes(b"")),
    "all files are cut off": damage_all_files(cut),
    "the directory of the metadata is missing": drop_metadata,
    "the database has nothing left": drop_database,
    "the links are missing": drop_links,
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_all_rows_are_there_after_the_metadata_was_lost(
    filled: tuple[Path, dict[str, Any]], tmp_path: Path, damage: Callable[[Path], Any]
) -> None:
    store = tmp_path / "store"
    shutil.copytree(filled[0], store, symlinks=True)
    before = {path: path.read_text() for path in database_directory(store).glob("*.sql")}
    damage(store)

    content, restored = open_store(store)

    assert content == filled[1]
    assert restored
    assert {path: path.read_text() for path in before} == before
    assert open_store(store) == (filled[1], None)


@pytest.mark.slow
def test_a_table_whose_directory_is_gone_too_is_a_new_one_and_the_others_keep_their_rows(
    filled: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(filled[0], store, symlinks=True)
    shutil.rmtree(table_directory(store, "events"))
    drop_database(store)

    content, restored = open_store(store)

    assert restored
    assert content["rows"] == {**filled[1]["rows"], "events": []}
    old, new = filled[1]["identities"], content["identities"]
    assert {name for name in old if new[name] != old[name]} == {"events"}


@pytest.mark.slow
def test_without_the_copy_the_tables_are_new_ones_with_other_identities(
    filled: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(filled[0], store, symlinks=True)
    copy_path(store).unlink()
    drop_metadata(store)

    content, restored = open_store(store)

    assert restored is None
    assert content["rows"] == {name: [] for name in filled[1]["rows"]}
    assert set(content["identities"].values()).isdisjoint(filled[1]["identities"].values())
