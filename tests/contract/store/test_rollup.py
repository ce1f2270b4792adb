"""The daily rollup, the source of sessions and profiles, is complete after every start.

A store of an older version has no rollup, and a power cut can break the projection of a part. The
next start rebuilds it from the events. A separate process opens each store.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.adapters.store.dialect.ddl import MIGRATIONS
from headrace.adapters.store.dialect.rollup_ddl import count_parts_without_rollup
from headrace.model.catalog import EVENTS
from testing.chdb import FreshStore
from testing.queries import query_body, run_query, select

PROGRAM = """
import json, sys, threading
from pathlib import Path
from headrace.adapters.store.chdb.check import check_store
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.ddl import DATABASE, MIGRATIONS
from headrace.base.logs import configure_logging, get_logger
from headrace.model.catalog import EVENTS
from testing.chdb import arrow_stream
configure_logging("error", process="test")
chdb = ChdbInstance(Path(sys.argv[1]), log=get_logger())
chdb.open()
"""
FILL = f"""{PROGRAM}
writer = ChdbWriter(chdb, migrations=MIGRATIONS[: int(sys.argv[2])])
writer.prepare()
for number in range(4):
    row = {{"id": number.to_bytes(16), "website_id": "w", "session_id": f"s{{number % 2}}"}}
    writer.insert(EVENTS, arrow_stream(EVENTS, [row]), token=str(number))
writer.close()
chdb.close()
"""
CHECK = f"""{PROGRAM}
report = check_store(chdb, known=None, expected=[])
print(json.dumps([report.issues, report.notes]))
chdb.close()
"""
START_SLOW_MUTATION = f"""{PROGRAM}
import time
writer = ChdbWriter(chdb)
writer.prepare()
database = chdb.session(DATABASE, writable=True)
database.execute(
    "ALTER TABLE events UPDATE title = if(sleepEachRow(1.5), '', title) WHERE 1"
    " SETTINGS mutations_sync = 0, allow_nondeterministic_mutations = 1"
)
deadline = time.monotonic() + 20
while not database.execute("SELECT 1 FROM system.merges WHERE is_mutation"):
    assert time.monotonic() < deadline, "the mutation has not begun"
database.close()
"""
REBUILD_AND_COUNT = """
assert writer.rollup.rebuild(threading.Event(), checks_bytes=True)
session = chdb.session()
print(json.dumps(session.execute(
    "SELECT session_id, sum(event_count) FROM visits GROUP BY session_id ORDER BY session_id"
    " SETTINGS output_format_json_quote_64bit_integers = 0"
)))
session.close()
writer.close()
chdb.close()
"""
COUNT = f"""{PROGRAM}
writer = ChdbWriter(chdb)
writer.prepare()
{REBUILD_AND_COUNT}
"""
COUNT_AFTER_SLOW_MUTATION = START_SLOW_MUTATION + REBUILD_AND_COUNT
COUNT_FROM_EVENTS = f"""{PROGRAM}
from headrace.formats.rollup_columns import rollup_from_events
session = chdb.session()
print(json.dumps(session.execute(rollup_from_events(
    "SELECT session_id, sum(event_count) FROM visits AS visit GROUP BY session_id"
    " ORDER BY session_id SETTINGS output_format_json_quote_64bit_integers = 0"
))))
session.close()
chdb.close()
"""
COMPLETE = [["s0", 2], ["s1", 2]]


def run(program: str, store: Path, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, store, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def issues_and_notes(store: Path) -> list[list[str]]:
    found: list[list[str]] = json.loads(run(CHECK, store))
    return found


@pytest.mark.slow
def test_store_of_an_older_version_gets_its_rollup(tmp_path: Path) -> None:
    run(FILL, tmp_path / "store", 1)
    assert json.loads(run(COUNT, tmp_path / "store")) == COMPLETE
    assert issues_and_notes(tmp_path / "store") == [[], []]


def empty_a_file(projection: Path) -> None:
    (projection / "data.bin").write_bytes(b"")


def alter_bytes(projection: Path) -> None:
    file = projection / "data.bin"
    file.chmod(0o600)
    file.write_bytes(bytes(byte ^ 1 for byte in file.read_bytes()))


def remove_all(projection: Path) -> None:
    for file in projection.iterdir():
        file.unlink()
    projection.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("damage_store", [empty_a_file, remove_all, alter_bytes])
def test_broken_rollup_is_reported_and_rebuilt(tmp_path: Path, damage_store: object) -> None:
    assert callable(damage_store)
    store = tmp_path / "store"
    run(FILL, store, 2)
    (projection,) = store.glob("store/*/*/all_2_2_0/visits.proj")
    damage_store(projection)
    note = (
        "the projection visits of the table events, which sessions and profiles read, is missing "
        "or broken in some parts (1): the service rebuilds it from the events by itself, or "
        "`headrace verify --repair` now"
    )
    assert issues_and_notes(store) == [[], [note]]
    assert json.loads(run(COUNT_FROM_EVENTS, store)) == COMPLETE
    assert json.loads(run(COUNT, store)) == COMPLETE
    assert issues_and_notes(store) == [[], []]


@pytest.mark.slow
def test_part_that_is_mutated_during_the_check_of_its_bytes_is_checked_again(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store"
    run(FILL, store, len(MIGRATIONS))
    for projection in store.glob("store/*/*/all_*/visits.proj"):
        alter_bytes(projection)
    assert json.loads(run(COUNT_AFTER_SLOW_MUTATION, store)) == COMPLETE
    assert issues_and_notes(store) == [[], []]


def test_deleted_events_are_in_no_session(chdb_store: FreshStore) -> None:
    rows = [
        {"website_id": "web_1", "session_id": "s", "event_name": name, "time": 1_767_300_000_000}
        for name in ("kept", "deleted", "kept")
    ]
    chdb_store.insert(EVENTS, rows)
    session = chdb_store.engine.session(chdb_store.database, writable=True)
    session.execute("DELETE FROM events WHERE event_name = 'deleted'")
    session.close()
    body = query_body(select("event_count", "sum", "n"), table="sessions")
    assert run_query(chdb_store, body).rows == [[2]]
    session = chdb_store.engine.session(chdb_store.database, writable=True)
    session.execute("DELETE FROM events WHERE event_name = 'kept'")
    session.close()
    there = count_parts_without_rollup(f"'{chdb_store.database}'")
    assert chdb_store.rows(there) == [[0]]


def test_part_without_rows_needs_no_rollup(chdb_store: FreshStore) -> None:
    """The last rows of a part were erased: it has nothing to build a rollup from."""
    for name in ("kept", "erased"):
        chdb_store.insert(EVENTS, [{"website_id": "web_1", "event_name": name}])
    session = chdb_store.engine.session(chdb_store.database, writable=True)
    session.execute(
        "ALTER TABLE events DELETE WHERE event_name = 'erased' SETTINGS mutations_sync = 1"
    )
    session.close()
    assert chdb_store.writer.rollup.check() == 0
    assert chdb_store.writer.rollup.is_whole
