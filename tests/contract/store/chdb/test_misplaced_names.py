"""Names of a real store lead to something else, as after a power cut without a journal.

The store is opened again in a process of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import json
import sys
from pathlib import Path
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.base.logs import configure_logging, get_logger
from headrace.model.catalog import EVENTS
from testing.chdb import arrow_stream

configure_logging("info", process="test")
chdb = ChdbInstance(Path(sys.argv[1]), log=get_logger())
chdb.open()
writer = ChdbWriter(chdb)
writer.prepare()
if sys.argv[2:]:
    row = {"id": (1).to_bytes(16), "value": 1.0}
    writer.insert(EVENTS, arrow_stream(EVENTS, [row]), token="1")
((rows,),) = chdb.execute("SELECT count() FROM headrace.events")
print(rows)
writer.close()
chdb.close()
"""
SEPARATED = "store_names_separated"


def open_store(store: Path, *arguments: str) -> tuple[int, list[Any]]:
    """Open a store and close it; return the number of its rows, and the separated paths."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(store), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    separated = [event["paths"] for event in events if event["event_name"] == SEPARATED]
    return int(done.stdout), separated


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with one event."""
    store = tmp_path_factory.mktemp("filled") / "store"
    assert open_store(store, "fill") == (1, [])
    return store


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Path:
    """A copy of it, without the files that other tests set aside."""
    return Path(shutil.copytree(filled, tmp_path / "store", symlinks=True))


def part_directory(store: Path) -> Path:
    """The directory of the only part with events."""
    (columns,) = store.glob("store/*/*/all_*/visits.proj")
    return columns.parent


def test_a_part_that_has_become_a_file_is_kept_aside(store: Path) -> None:
    """A part that chDB needs no more: the engine died at every start."""
    part = part_directory(store).with_name("all_0_0_0")
    part.write_text("columns of another part")

    assert open_store(store) == (1, [[str(part.relative_to(store))]])
    kept = store.with_name("damaged") / "all_0_0_0.1"
    assert kept.read_text() == "columns of another part"
    assert open_store(store) == (1, [])


@pytest.mark.parametrize("prefix", ["", "tmp_merge_", "delete_tmp_"])
def test_a_part_that_has_become_a_name_of_another_file_loses_it(store: Path, prefix: str) -> None:
    part = part_directory(store)
    name = part.with_name(f"{prefix}all_0_0_0")
    os.link(part / "columns.txt", name)

    assert open_store(store) == (1, [[str(name.relative_to(store))]])
    assert not store.with_name("damaged").exists()
    assert (part / "columns.txt").stat().st_nlink == 1


@pytest.mark.parametrize("name", ["deduplication_logs", "detached"])
def test_a_directory_of_a_table_that_has_become_a_file_is_made_again(
    store: Path, name: str
) -> None:
    directory = part_directory(store).with_name(name)
    shutil.rmtree(directory)
    directory.write_text("a segment")

    assert open_store(store) == (1, [[str(directory.relative_to(store))]])
    assert directory.is_dir()


def test_a_status_that_has_become_a_directory_is_kept_aside(store: Path) -> None:
    (store / "status").mkdir()
    (store / "status" / "data.bin").write_text("rows of a part")

    assert open_store(store) == (1, [["status"]])
    kept = store.with_name("damaged") / "status.1" / "data.bin"
    assert kept.read_text() == "rows of a part"
    assert open_store(store) == (1, [])


def test_a_status_that_belongs_to_another_name_is_not_overwritten(store: Path) -> None:
    segment = store.with_name("1.segment")
    segment.write_text("acknowledged events")
    os.link(segment, store / "status")

    assert open_store(store) == (1, [["status"]])
    assert segment.read_text() == "acknowledged events"


def test_a_status_of_a_killed_process_stays(store: Path) -> None:
    (store / "status").write_text("PID: 1\n")
    assert open_store(store) == (1, [])


def test_a_copy_of_the_metadata_that_has_become_a_directory_is_made_again(store: Path) -> None:
    copy = store / "headrace-metadata.json"
    copy.unlink()
    copy.mkdir()

    assert open_store(store) == (1, [["headrace-metadata.json"]])
    assert copy.is_file()


@pytest.mark.parametrize("name", ["data", "tmp"])
def test_a_directory_that_has_become_a_file_is_made_again(store: Path, name: str) -> None:
    shutil.rmtree(store / name)
    (store / name).write_text("a segment")

    assert open_store(store) == (1, [[name]])
    assert (store.with_name("damaged") / f"{name}.1").read_text() == "a segment"


@pytest.mark.parametrize("name", ["mutation_9.txt", "deduplication_logs/deduplication_log_9.txt"])
def test_a_file_of_a_table_that_has_become_a_directory_is_kept_aside(
    store: Path, name: str
) -> None:
    file = part_directory(store).parent / name
    file.mkdir()

    assert open_store(store) == (1, [[str(file.relative_to(store))]])


def test_a_closed_store_has_no_name_for_its_lock_on_the_disk(store: Path) -> None:
    """The inode is not free while the name may be on the disk."""
    program = PROGRAM.replace("import json\n", TRACED, 1)
    done = subprocess.run(
        [sys.executable, "-c", program, str(store)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines()[-1] == "status (deleted)"


TRACED = """
import json
import os
from headrace.adapters.store.chdb.files import misplaced_names

sync_directory = misplaced_names.sync_directory


def sync(path):
    links = [os.readlink(f"/proc/self/fd/{one.name}") for one in os.scandir("/proc/self/fd")
             if os.path.lexists(one.path)]
    print(*(os.path.basename(link) for link in links if "/status" in link))
    sync_directory(path)


misplaced_names.sync_directory = sync
"""
