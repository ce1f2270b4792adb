"""Data directories that older and newer versions wrote."""

import json
import sqlite3
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from headrace import __version__
from headrace.adapters.data_dir.format import migrate_data_dir
from headrace.adapters.data_dir.lock import SERVE_COMMAND, lock_data_dir
from headrace.adapters.directory.schema_version import SCHEMA_VERSION
from headrace.adapters.directory.sql_directory import open_directory
from headrace.adapters.sqlite.idempotency import SqliteIdempotencyStore
from headrace.base.clock import FixedClock, SystemClock
from headrace.base.settings import load_settings
from headrace.ingest.receive.authorize import Caller
from headrace.ingest.receive.idempotency import request_digest
from headrace.ports.idempotency import Replay
from headrace.wiring.data import migrate_data_dir_if_idle
from testing.archives import extract_all
from testing.service import HEADRACE, Service, run_to_end
from tests.e2e.conftest import ServiceMaker
from tests.e2e.query.queries import query, select
from tests.fixtures.make_data_directory import CONTENT, IDEMPOTENCY_KEY

FIXTURES = Path(__file__).parents[2] / "fixtures"
ARCHIVES = sorted(FIXTURES.glob("data-directory-*.tar.zst"))
COLUMNS = {"events": "event_name", "errors": "message", "performance": "metric_name"}
TABLE_FILES = "store/store/*/*/*.sql"
COMMANDS = (
    ("serve", "--port", "0"),
    ("website", "list"),
    ("key", "create", "--scope", "track:events"),
    ("init",),
    ("quarantine", "list"),
    ("backup", "/nowhere"),
    ("verify",),
    ("storage",),
    ("prune",),
    ("erase", "--website", "web_x", "--anonymous-id", "a"),
    ("erase", "--website", "web_x", "--all"),
    ("erasures", "list"),
    ("erasures", "export", "/nowhere"),
    ("subject-access", "--website", "web_x", "--anonymous-id", "a"),
    ("export", "--website", "web_x", "--format", "csv", "/nowhere"),
    ("import", "--website", "web_x", "--format", "ndjson", "/dev/null"),
)
ENGINE_COMMANDS = (
    ("serve", "--port", "0"),
    ("backup", "/nowhere"),
    ("verify",),
    ("storage",),
    ("prune",),
    ("quarantine", "retry", "--all"),
)
"""Commands that run an engine, or read what one writes, before they need a website or a key."""

COMMANDS_BESIDE_A_SERVICE = (
    ("website", "list"),
    ("key", "create", "--scope", "track:events"),
    ("init",),
    ("audit",),
    ("sign-in",),
    ("quarantine", "list"),
    ("quarantine", "retry", "--all"),
    ("backup", "/nowhere"),
    ("storage",),
    ("prune",),
    ("erase", "--website", "web_x", "--anonymous-id", "a"),
    ("subject-access", "--website", "web_x", "--anonymous-id", "a"),
)


def unpack(archive: Path, into: Path) -> Path:
    with archive.open("rb") as file:
        content = zstandard.ZstdDecompressor().stream_reader(file)
        with tarfile.open(fileobj=content, mode="r|") as members:
            extract_all(members, into)
    return into / "data"


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name.partition(".")[0])
def old_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """A service, not yet started, on the data directory of an older version."""
    service = Service(unpack(request.param, tmp_path))
    yield service
    service.kill()


@pytest.mark.slow
def test_files_of_an_existing_directory_are_readable_by_their_owner_only(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service()
    directories = [service.data, service.data / "log", service.data / "quarantine"]
    for directory in directories:
        directory.mkdir()
        directory.chmod(0o755)  # whatever the umask is
    (service.data / "repeats.sqlite").touch()
    (service.data / "repeats.sqlite").chmod(0o644)
    service.start()
    website = service.website()
    service.post(f"/track?website_id={website}", {"name": "a", "eventId": "one"})
    service.command("backup", str(service.data.with_name("backup.tar.zst")))
    assert service.count(website, "events") == 1
    assert service.stop() == 0
    readable = {
        path.relative_to(service.data)
        for path in service.data.rglob("*")
        if not path.is_symlink() and path.stat().st_mode & 0o077
    }
    assert readable == set()
    assert service.data.stat().st_mode & 0o777 == 0o755


@pytest.mark.slow
def test_data_directory_of_an_older_version_is_fully_readable(old_service: Service) -> None:
    old_service.start()
    (website,) = old_service.command("website", "list")
    found = {
        table: old_service.counts(website["id"], table, column) for table, column in COLUMNS.items()
    }
    assert found == CONTENT
    sent_query = query(select("event_count", "sum", "n"), table="sessions", group_by=["session_id"])
    assert old_service.answer(website["id"], sent_query) == [{"session_id": "s", "n": 1}]
    (key, *_) = old_service.command("key", "list")
    assert (key["scopes"], key["home"]) == (["track:events"], website["id"])
    old_service.kill()
    old_service.restart()
    assert old_service.counts(website["id"], "events", "event_name") == CONTENT["events"]


@pytest.mark.slow
def test_tables_of_an_older_version_get_the_settings_of_new_ones(
    old_service: Service, tmp_path: Path
) -> None:
    fresh = Service(tmp_path / "fresh")
    try:
        assert table_settings(old_service) != table_settings(fresh.start())
        assert table_settings(old_service.start()) == table_settings(fresh)
    finally:
        fresh.kill()


def table_settings(service: Service) -> dict[str, set[str]]:
    """Return the settings of each table, from the files of chDB."""
    statements = {path.stem: path.read_text() for path in service.data.glob(TABLE_FILES)}
    return {
        table: set(statements[table].rpartition("SETTINGS ")[2].strip().split(", "))
        for table in COLUMNS
    }


async def test_idempotency_keys_of_an_older_version_are_remembered(old_service: Service) -> None:
    path = old_service.data / "repeats.sqlite"
    with sqlite3.connect(path) as connection:
        ((claimed_ms,),) = connection.execute("SELECT min(claimed_ms) FROM claims")
    connection.close()
    (website,) = old_service.directory.websites()
    idempotency_store = SqliteIdempotencyStore.open(
        path, owner="worker-0", clock=FixedClock(claimed_ms + 60_000)
    )
    try:
        digest = request_digest(Caller(key=None, website=website), "/track", IDEMPOTENCY_KEY)
        assert await idempotency_store.acquire(digest) == Replay(b'{"count":2,"event_ids":[]}')
    finally:
        await idempotency_store.close()


def run(data: Path, command: Sequence[str]) -> tuple[int, str]:
    done = run_to_end([HEADRACE, *command, "--data", str(data)])
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_data_directory_of_a_newer_version_is_rejected_unchanged(
    tmp_path: Path, command: Sequence[str]
) -> None:
    (tmp_path / "headrace.json").write_text(json.dumps({"format": 99, "written_by": "9.9.9"}))
    (tmp_path / "log").mkdir()
    rejection = (
        f"headrace: the data directory {tmp_path} was written by Headrace 9.9.9 in format 99; "
        f"this is Headrace {__version__}, which supports formats up to 1: use the newer version\n"
    )
    assert run(tmp_path, command) == (1, rejection)
    assert {path.name for path in tmp_path.iterdir()} <= {"headrace.json", "lock", "log"}


@pytest.mark.parametrize("command", ENGINE_COMMANDS, ids=" ".join)
def test_data_directory_whose_websites_a_newer_version_wrote_is_rejected_before_its_log_is_loaded(
    tmp_path: Path, command: Sequence[str]
) -> None:
    data = unpack(ARCHIVES[0], tmp_path)
    with closing(sqlite3.connect(data / "directory.sqlite")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = contents(data)
    rejection = (
        f"headrace: the directory {data / 'directory.sqlite'} was written by a newer version of "
        f"Headrace (its schema is 9999, this version supports {SCHEMA_VERSION}): use that "
        "version\n"
    )
    assert run(data, command) == (1, rejection)
    assert contents(data) == before


@pytest.mark.parametrize("command", COMMANDS_BESIDE_A_SERVICE, ids=" ".join)
def test_data_directory_of_a_running_older_version_is_not_migrated(
    tmp_path: Path, command: Sequence[str]
) -> None:
    data = unpack(ARCHIVES[0], tmp_path)
    before = contents(data)
    with lock_data_dir(data, SERVE_COMMAND):  # as an older version has it
        done = run(data, command)
    refusal = (
        f"headrace: the service that uses {data} is of an older version than this command, or "
        "still starting: stop or upgrade it before the data directory is migrated\n"
    )
    assert done == (1, refusal)
    assert contents(data) == before


def test_command_waits_for_a_service_that_has_just_started_to_migrate_the_directory(
    tmp_path: Path,
) -> None:
    data = unpack(ARCHIVES[0], tmp_path)
    settings = load_settings({"data_dir": str(data)}, {})
    with lock_data_dir(data, SERVE_COMMAND), ThreadPoolExecutor() as threads:
        command = threads.submit(migrate_data_dir_if_idle, settings)
        with pytest.raises(TimeoutError):
            command.result(timeout=0.1)
        migrate_data_dir(data)
        open_directory(data / "directory.sqlite", SystemClock()).close()
        command.result(timeout=30)
    assert run(data, ("website", "list")) == (0, "")


def test_data_directory_of_an_older_version_that_was_stopped_is_migrated(tmp_path: Path) -> None:
    data = unpack(ARCHIVES[0], tmp_path)
    with lock_data_dir(data, SERVE_COMMAND):
        pass
    assert run(data, ("website", "list")) == (0, "")
    with lock_data_dir(data, SERVE_COMMAND):
        assert run(data, ("website", "list")) == (0, "")


def contents(data: Path) -> Mapping[str, bytes]:
    """Return the files of a data directory by their paths, without the lock."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file() and path.name != "lock"
    }
