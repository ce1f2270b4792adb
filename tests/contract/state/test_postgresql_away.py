"""An outage of PostgreSQL: the errors while it lasts, and recovery without a restart."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from headrace.adapters.directory.sql_directory import open_directory
from headrace.base.clock import FixedClock
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings
from headrace.wiring.shared import open_configured_directory
from testing.servers.shared_state import PostgreSQL

CLOCK = FixedClock(1_700_000_000_000)


@pytest.fixture
def server(postgresql: PostgreSQL) -> Iterator[PostgreSQL]:
    """The shared server; the fixture restarts it after the test."""
    yield postgresql
    postgresql.server.kill()
    postgresql.server.start()


def test_unavailable_server_is_used_again_once_it_is_back(server: PostgreSQL) -> None:
    directory = open_directory(server.new_database(), CLOCK)
    website = directory.create_website(name="Blog")
    server.server.kill()
    with pytest.raises(OperatorError, match="cannot use the directory postgresql"):
        directory.revision()
    server.server.start()
    assert directory.websites() == (website,)
    directory.close()


def test_server_restart_between_two_calls_is_transparent(
    server: PostgreSQL,
) -> None:
    directory = open_directory(server.new_database(), CLOCK)
    before = directory.visitor_salt("2026-03-01")
    server.server.kill()
    server.server.start()
    assert directory.visitor_salt("2026-03-01") == before
    directory.close()


def test_url_with_password_may_be_read_from_a_file(postgresql: PostgreSQL, tmp_path: Path) -> None:
    file = tmp_path / "directory-url"
    file.write_text(postgresql.new_database() + "\n", encoding="utf-8")
    settings = Settings(data_dir=str(tmp_path / "data"), database_url_file=str(file))
    directory = open_configured_directory(settings, CLOCK)
    website = directory.create_website(name="Blog")
    directory.close()
    assert website.name == "Blog"
    assert not (tmp_path / "data").exists()


def test_url_in_a_file_and_in_the_setting_is_an_error(tmp_path: Path) -> None:
    settings = Settings(database_url="postgresql://a@b/c", database_url_file=str(tmp_path / "url"))
    with pytest.raises(OperatorError) as caught:
        open_configured_directory(settings, CLOCK)
    assert str(caught.value) == "set HEADRACE_DATABASE_URL or HEADRACE_DATABASE_URL_FILE, not both"


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    empty.write_text("\n", encoding="utf-8")
    messages: list[str] = []
    for file in (missing, empty):
        with pytest.raises(OperatorError) as caught:
            open_configured_directory(Settings(database_url_file=os.fspath(file)), CLOCK)
        messages.append(str(caught.value))
    assert messages == [
        f"cannot read {missing}, which HEADRACE_DATABASE_URL_FILE names: no such file or directory",
        f"the first line of {empty}, which HEADRACE_DATABASE_URL_FILE names, is empty",
    ]


def test_old_salts_are_erased_from_the_database_files(postgresql: PostgreSQL) -> None:
    url = postgresql.new_database()
    directory = open_directory(url, CLOCK)
    salts = [directory.visitor_salt(f"2026-03-0{day}") for day in (1, 2)]
    directory.close()
    assert [salt in _file_of_salts(url) for salt in salts] == [False, True]


def _file_of_salts(url: str) -> bytes:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute(
            "SELECT pg_read_binary_file(pg_relation_filepath('visitor_salts'))"
        ).fetchone()
    assert row is not None
    return bytes(row[0])


def test_a_dump_of_the_database_keeps_no_salt_waiting(postgresql: PostgreSQL) -> None:
    """As `pg_dump` has it, the lock of a table lasts until all of the database is read."""
    url = postgresql.new_database()
    directory, other = (open_directory(url, CLOCK) for _ in range(2))
    old = directory.visitor_salt("2026-03-01")
    with psycopg.connect(url) as dump:
        dump.execute("LOCK TABLE visitor_salts IN ACCESS SHARE MODE")
        with capture_logs() as logs:
            new = directory.visitor_salt("2026-03-02")
        assert other.visitor_salt("2026-03-02") == new != old
    assert [line["event"] for line in logs] == ["old_salts_not_scrubbed"]
    with capture_logs() as logs:
        directory.forget_visitor_salts("2026-03-02")
    assert logs == []
    assert old not in _file_of_salts(url)
    for one in (directory, other):
        one.close()
