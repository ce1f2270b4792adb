"""The contract of the directory, for SQLite and PostgreSQL."""

import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from headrace.adapters.directory.connection import open_database
from headrace.adapters.directory.schema import run_migrations
from headrace.adapters.directory.schema_version import SCHEMA_VERSION
from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.adapters.directory.tables import METADATA
from headrace.base.clock import FixedClock, SystemClock
from headrace.base.errors import OperatorError
from headrace.model.data_retention import DataRetention, RetentionChange
from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    Organization,
    OrganizationId,
    Scope,
    TenancySnapshot,
    Website,
    WebsiteChange,
    WebsiteId,
    hash_secret,
)

NOON = 1_700_000_000_000
BOTH = frozenset(Scope)
TRACK = frozenset({Scope.TRACK_EVENTS})
UNKNOWN_USER = OrganizationId("org_nobody")

Location = str | Path


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


def reopened(location: Location) -> SqlDirectory:
    """Open the same directory a second time, as another process would."""
    return open_directory(location, SystemClock())


class Counting:
    """A counter in place of random bytes, so that every id is predictable."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, length: int) -> bytes:
        self._count += 1
        return self._count.to_bytes(length)


def rejection(act: Callable[[], object]) -> str:
    """Return the message of the `OperatorError` that a call raises."""
    with pytest.raises(OperatorError) as caught:
        act()
    return str(caught.value)


def test_organizations_are_listed_oldest_first_even_when_the_clock_goes_back(
    directory: SqlDirectory, clock: FixedClock
) -> None:
    first = directory.create_organization(" acme ")
    clock.advance(-1000)
    second = directory.create_organization("acme")
    assert first == Organization(id=first.id, name="acme", created_ms=NOON)
    assert second == Organization(id=second.id, name="acme", created_ms=NOON - 1000)
    assert directory.organizations() == (first, second)


def test_a_renamed_organization_keeps_its_id_and_its_position(
    directory: SqlDirectory,
) -> None:
    first, second = directory.create_organization("acme"), directory.create_organization("bees")
    renamed = directory.rename_organization(first.id, " Acme ")
    assert renamed == Organization(id=first.id, name="Acme", created_ms=NOON)
    assert directory.organizations() == (renamed, second)
    assert rejection(lambda: directory.rename_organization(UNKNOWN_USER, "x")) == (
        "no organization has the id 'org_nobody'"
    )
    assert rejection(lambda: directory.rename_organization(first.id, " ")) == (
        "the name of an organization must not be empty"
    )


def test_a_website_is_created_with_its_retention(directory: SqlDirectory) -> None:
    made = directory.create_website(name="Blog", retention=RetentionChange(days=30, errors=7))
    assert made.retention == DataRetention(days=30, errors=7)
    assert directory.websites() == (made,)


def test_default_organization_is_created_once_and_recreated_after_deletion(
    directory: SqlDirectory,
) -> None:
    assert directory.organizations() == ()
    websites = [directory.create_website(name=name) for name in ("Blog", "Shop")]
    (first,) = directory.organizations()
    assert [website.organization_id for website in websites] == [first.id, first.id]
    directory.delete_organization(first.id)
    third = directory.create_website(name="Docs")
    (second,) = directory.organizations()
    assert (second.name, second.id == first.id) == ("default", False)
    assert third.organization_id == second.id


def test_organization_named_default_is_the_default_one(
    directory: SqlDirectory,
) -> None:
    made = directory.create_organization("default")
    assert directory.create_website(name="Blog").organization_id == made.id


def test_website_is_read_as_created(directory: SqlDirectory) -> None:
    acme = directory.create_organization("acme")
    website = directory.create_website(
        name=" Blog ",
        domain="blog.example",
        organization_id=acme.id,
        public=True,
        origins=("https://Blog.example", "*.blog.example", "https://blog.example:443"),
    )
    assert website == Website(
        id=website.id,
        name="Blog",
        domain="blog.example",
        organization_id=acme.id,
        created_ms=NOON,
        public=True,
        origins=("https://blog.example", "*.blog.example"),
    )
    assert directory.websites() == (website,)


def test_website_without_organization_belongs_to_the_default_one(directory: SqlDirectory) -> None:
    website = directory.create_website(name="Blog")
    (default,) = directory.organizations()
    assert website == Website(
        id=website.id,
        name="Blog",
        domain="",
        organization_id=default.id,
        created_ms=NOON,
    )


def test_websites_may_have_equal_names(directory: SqlDirectory) -> None:
    websites = tuple(directory.create_website(name="Blog") for _ in range(3))
    assert directory.websites() == websites
    assert len({website.id for website in websites}) == 3


def test_changed_website_has_the_new_values_and_keeps_the_others(directory: SqlDirectory) -> None:
    first, second = (directory.create_website(name=name, domain="a") for name in ("Blog", "Shop"))
    acme = directory.create_organization("acme")
    changed = directory.update_website(
        first.id,
        WebsiteChange(
            name=" News ",
            organization_id=acme.id,
            public=True,
            origins=("https://News.example", "https://news.example:443"),
        ),
    )
    assert changed == Website(
        id=first.id,
        name="News",
        domain="a",
        organization_id=acme.id,
        created_ms=NOON,
        public=True,
        origins=("https://news.example",),
    )
    assert directory.websites() == (changed, second)
    assert directory.tenancy().websites[first.id] == changed


def test_retention_of_a_website_and_its_tables_is_changed_one_by_one(
    directory: SqlDirectory,
) -> None:
    website = directory.create_website(name="Blog")
    assert website.retention == DataRetention()
    for change in (
        RetentionChange(days=30, errors=7),
        RetentionChange(events=0),
        RetentionChange(errors=None, performance=36_500),
    ):
        website = directory.update_website(website.id, WebsiteChange(retention=change))
    assert website.retention == DataRetention(days=30, events=0, errors=None, performance=36_500)
    assert directory.websites() == (website,)


@pytest.mark.parametrize("days", [-1, 36_501])
def test_retention_out_of_bounds_is_rejected(directory: SqlDirectory, days: int) -> None:
    website = directory.create_website(name="Blog")
    change = WebsiteChange(name="News", retention=RetentionChange(events=days))
    assert rejection(lambda: directory.update_website(website.id, change)) == (
        f"rows cannot be kept for {days} days: give 0 (for ever) to 36500"
    )
    assert directory.websites() == (website,)


def test_ids_are_url_safe_and_have_a_type_prefix(directory: SqlDirectory) -> None:
    website = directory.create_website(name="Blog")
    key, secret = directory.create_key(scopes=BOTH)
    assert re.fullmatch(r"web_[0-9A-Za-z]{16}", website.id)
    assert re.fullmatch(r"org_[0-9A-Za-z]{16}", key.organization_id)
    assert re.fullmatch(r"key_[0-9A-Za-z]{16}", key.id)
    assert re.fullmatch(r"hr_[0-9A-Za-z]{42}", secret)


def test_all_ids_and_secrets_use_the_given_random_source(location: Location) -> None:
    directory = open_directory(location, FixedClock(NOON), randomness=Counting())
    key, secret = directory.create_key(scopes=TRACK)
    directory.close()
    assert (key.organization_id, key.id) == (
        "org_2000000000000000",
        "key_4000000000000000",  # the third is that of the organization's line in the audit log
    )
    assert secret == "hr_1" + "0" * 41


def test_key_is_read_as_created(directory: SqlDirectory) -> None:
    blog, shop = directory.create_website(name="Blog"), directory.create_website(name="Shop")
    key, secret = directory.create_key(
        scopes=TRACK,
        organization_id=blog.organization_id,
        website_ids=(shop.id, blog.id, shop.id),
        default_website_id=blog.id,
        expires_ms=NOON + 1,
    )
    assert blog.organization_id is not None
    assert key == ApiKey(
        id=key.id,
        prefix=secret[:9],
        secret_hash=hash_secret(secret),
        organization_id=blog.organization_id,
        scopes=TRACK,
        created_ms=NOON,
        website_ids=(shop.id, blog.id),
        default_website_id=blog.id,
        expires_ms=NOON + 1,
    )
    assert directory.keys() == (key,)


def test_secret_of_a_key_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "directory.sqlite"
    directory = open_directory(path, FixedClock(NOON))
    key, secret = directory.create_key(scopes=BOTH)
    directory.close()
    assert secret.encode() not in path.read_bytes()
    assert bytes(key.secret_hash) in path.read_bytes()


def test_key_that_has_expired_already_can_be_created(directory: SqlDirectory) -> None:
    key, _ = directory.create_key(scopes=BOTH, expires_ms=NOON - 1)
    assert key.is_valid_at(NOON) is False


@pytest.mark.parametrize("scope", ["track:events", "read:data", "manage:data", "manage:config"])
def test_key_has_the_one_scope_it_was_created_with(directory: SqlDirectory, scope: str) -> None:
    key, _ = directory.create_key(scopes=frozenset({Scope(scope)}))
    assert directory.keys() == (key,)
    assert [one.value for one in key.scopes] == [scope]


def test_rejected_key_is_not_stored(directory: SqlDirectory) -> None:
    before = directory.tenancy()
    sentence = rejection(lambda: directory.create_key(scopes=frozenset()))
    assert sentence == (
        "a key needs at least one scope: track:events, read:data, manage:data or manage:config"
    )
    assert (directory.keys(), directory.organizations()) == ((), ())
    assert directory.tenancy() == before


def test_key_for_websites_beyond_its_organization_is_rejected(directory: SqlDirectory) -> None:
    acme = directory.create_organization("acme")
    website = directory.create_website(name="Blog", organization_id=acme.id)
    default = directory.create_organization("default")
    expected = (
        f"the website {website.id} belongs to the organization {acme.id}, "
        f"and the key would belong to {default.id}"
    )
    in_list = rejection(lambda: directory.create_key(scopes=BOTH, website_ids=(website.id,)))
    in_default = rejection(lambda: directory.create_key(scopes=BOTH, default_website_id=website.id))
    assert (in_list, in_default) == (expected, expected)
    assert directory.keys() == ()


def test_key_whose_default_website_is_not_in_its_list_is_rejected(directory: SqlDirectory) -> None:
    blog, shop = directory.create_website(name="Blog"), directory.create_website(name="Shop")
    sentence = rejection(
        lambda: directory.create_key(
            scopes=BOTH, website_ids=(blog.id,), default_website_id=shop.id
        )
    )
    assert sentence == f"the home website {shop.id} is not one of those to which the key is limited"


UNKNOWN: dict[str, tuple[Callable[[SqlDirectory], object], str]] = {
    "delete an organization": (
        lambda directory: directory.delete_organization(UNKNOWN_USER),
        "no organization has the id 'org_nobody'",
    ),
    "delete a website": (
        lambda directory: directory.delete_website(WebsiteId("web_x")),
        "no website has the id 'web_x'",
    ),
    "change a website": (
        lambda directory: directory.update_website(WebsiteId("web_x"), WebsiteChange(name="a")),
        "no website has the id 'web_x'",
    ),
    "a website's new organization": (
        lambda directory: directory.update_website(
            WebsiteId("web_x"), WebsiteChange(organization_id=UNKNOWN_USER)
        ),
        "no organization has the id 'org_nobody'",
    ),
    "revoke a key": (
        lambda directory: directory.revoke_key(KeyId("")),
        "no key has the id ''",
    ),
    "half a character": (
        lambda directory: directory.delete_website(WebsiteId("web_\udcff")),
        "no website has the id 'web_\\udcff'",
    ),
    "a website's organization": (
        lambda directory: directory.create_website(name="Blog", organization_id=UNKNOWN_USER),
        "no organization has the id 'org_nobody'",
    ),
    "a key's organization": (
        lambda directory: directory.create_key(scopes=BOTH, organization_id=UNKNOWN_USER),
        "no organization has the id 'org_nobody'",
    ),
    "a key's website": (
        lambda directory: directory.create_key(scopes=BOTH, website_ids=(WebsiteId("web_x"),)),
        "no website has the id 'web_x'",
    ),
    "a key's home": (
        lambda directory: directory.create_key(scopes=BOTH, default_website_id=WebsiteId("web_x")),
        "no website has the id 'web_x'",
    ),
}


@pytest.mark.parametrize(("act", "sentence"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown_ids_are_named_and_change_nothing(
    directory: SqlDirectory, act: Callable[[SqlDirectory], object], sentence: str
) -> None:
    before = directory.revision()
    assert rejection(lambda: act(directory)) == sentence
    assert (directory.revision(), directory.organizations()) == (before, ())


@pytest.mark.parametrize("name", ["", "  "])
def test_names_must_not_be_empty(directory: SqlDirectory, name: str) -> None:
    assert [
        rejection(lambda: directory.create_organization(name)),
        rejection(lambda: directory.create_website(name=name)),
    ] == [
        "the name of an organization must not be empty",
        "the name of a website must not be empty",
    ]


def test_deleting_an_organization_deletes_its_keys_and_keeps_its_websites(
    directory: SqlDirectory,
) -> None:
    acme = directory.create_organization("acme")
    orphan = directory.create_website(name="Blog", organization_id=acme.id)
    kept = directory.create_website(name="Shop")
    directory.create_key(scopes=BOTH, organization_id=acme.id)
    kept_key, _ = directory.create_key(scopes=BOTH)
    directory.delete_organization(acme.id)
    assert kept.organization_id is not None
    orphan = Website(id=orphan.id, name="Blog", domain="", organization_id=None, created_ms=NOON)
    assert directory.keys() == (kept_key,)
    assert directory.tenancy() == TenancySnapshot(
        revision=directory.revision(),
        websites={orphan.id: orphan, kept.id: kept},
        keys={kept_key.secret_hash: kept_key},
        websites_by_organization={kept.organization_id: (kept.id,)},
    )


def test_key_limited_to_a_deleted_website_stays_limited_to_it(directory: SqlDirectory) -> None:
    blog, shop = directory.create_website(name="Blog"), directory.create_website(name="Shop")
    key, _ = directory.create_key(scopes=BOTH, website_ids=(blog.id,))
    directory.delete_website(blog.id)
    assert directory.websites() == (shop,)
    assert directory.keys() == (key,)
    assert directory.tenancy().keys[key.secret_hash].can_access(shop) is False


def test_revoked_key_is_listed_and_no_longer_works(
    directory: SqlDirectory, clock: FixedClock
) -> None:
    key, _ = directory.create_key(scopes=BOTH)
    clock.advance(5)
    directory.revoke_key(key.id)
    clock.advance(5)
    directory.revoke_key(key.id)
    (listed,) = directory.keys()
    assert (listed.id, listed.revoked_ms) == (key.id, NOON + 5)
    assert directory.tenancy().keys == {}


def test_tenancy_keeps_websites_in_the_order_of_creation(
    directory: SqlDirectory, clock: FixedClock
) -> None:
    made: list[WebsiteId] = []
    for _ in range(5):
        clock.advance(-1)
        made.append(directory.create_website(name="Blog").id)
    (default,) = directory.organizations()
    assert directory.tenancy().websites_by_organization == {default.id: tuple(made)}


def test_every_change_is_another_revision(directory: SqlDirectory) -> None:
    acme = directory.create_organization("acme")
    changes: list[Callable[[], object]] = [
        lambda: directory.rename_organization(acme.id, "Acme"),
        lambda: directory.create_website(name="Blog"),
        lambda: directory.create_key(scopes=BOTH),
        lambda: directory.revoke_key(directory.keys()[0].id),
        lambda: directory.update_website(
            directory.websites()[0].id, WebsiteChange(retention=RetentionChange(days=1))
        ),
        lambda: directory.delete_website(directory.websites()[0].id),
        lambda: directory.delete_organization(acme.id),
    ]
    revisions = [directory.revision()]
    for change in changes:
        change()
        revisions.append(directory.revision())
    assert len(set(revisions)) == len(changes) + 1
    assert directory.tenancy().revision == revisions[-1]


def test_change_by_another_process_is_visible_immediately(
    directory: SqlDirectory, location: Location
) -> None:
    other = reopened(location)
    before = directory.revision()
    website = other.create_website(name="Blog")
    other.close()
    assert directory.revision() != before
    assert directory.tenancy().websites == {website.id: website}


def test_salt_of_a_day_is_the_same_for_all_processes(
    directory: SqlDirectory, location: Location
) -> None:
    other = reopened(location)
    salts = {directory.visitor_salt("2026-03-01"), other.visitor_salt("2026-03-01")}
    other.close()
    assert [len(salt) for salt in salts] == [32]


def test_salt_of_a_new_day_destroys_the_earlier_ones(directory: SqlDirectory) -> None:
    revision = directory.revision()
    first = directory.visitor_salt("2026-03-01")
    second = directory.visitor_salt("2026-03-02")
    assert directory.visitor_salt("2026-03-02") == second
    assert first not in {second, directory.visitor_salt("2026-03-01")}
    assert directory.revision() == revision


def test_salts_of_earlier_days_are_destroyed_without_a_new_one(directory: SqlDirectory) -> None:
    revision = directory.revision()
    first = directory.visitor_salt("2026-03-01")
    directory.forget_visitor_salts("2026-03-01")
    assert directory.visitor_salt("2026-03-01") == first
    directory.forget_visitor_salts("2026-03-02")
    directory.forget_visitor_salts("2026-03-02")
    assert directory.visitor_salt("2026-03-01") != first
    assert directory.revision() == revision


@pytest.mark.parametrize("by_new_day", [True, False], ids=["by a new day", "by the clock"])
def test_destroyed_salt_is_overwritten_in_the_journal(tmp_path: Path, by_new_day: bool) -> None:
    directory = open_directory(tmp_path / "directory.sqlite", FixedClock(NOON))
    first = directory.visitor_salt("2026-03-01")
    journal = tmp_path / "directory.sqlite-journal"
    directory.create_organization("first")  # its journal has the page with the salt
    before = journal.read_bytes(), journal.stat().st_ino
    if by_new_day:
        directory.visitor_salt("2026-03-02")
    else:
        directory.forget_visitor_salts("2026-03-02")
    directory.close()
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert (before[1], first in left) == (journal.stat().st_ino, False)
    assert len(journal.read_bytes()) >= len(before[0]) > 0  # overwritten, not freed


def test_destroyed_salt_is_gone_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "directory.sqlite"
    directory = open_directory(path, FixedClock(NOON))
    first = directory.visitor_salt("2026-03-01")
    assert first in path.read_bytes()
    second = directory.visitor_salt("2026-03-02")
    directory.close()
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert (first in left, second in left) == (False, True)


_RACE = """
import sys
from headrace.adapters.directory.sql_directory import open_directory
from headrace.base.clock import SystemClock

print("ready", flush=True)
sys.stdin.read()
directory = open_directory(sys.argv[1], SystemClock())
website = directory.create_website(name="Blog")
print(website.organization_id, directory.visitor_salt("2026-03-01").hex())
directory.close()
"""


def test_processes_that_start_concurrently_agree_on_schema_default_organization_and_salt(
    location: Location,
) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACE, str(location)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == b"ready\n"
    results = [racer.communicate() for racer in racers]
    assert [
        (racer.returncode, errors) for racer, (_, errors) in zip(racers, results, strict=True)
    ] == [(0, b"")] * 4
    assert len({output for output, _ in results}) == 1


def described(connection: Connection) -> dict[str, Any]:
    """Return what the database says of its tables, and the rows that they begin with."""
    inspector = inspect(connection)
    first_rows = "SELECT id, revision, version_num FROM directory_revision, alembic_version"
    return {
        "rows": [tuple(row) for row in connection.execute(text(first_rows))],
        **{
            table: {
                "columns": [
                    {**column, "type": str(column["type"])}
                    for column in inspector.get_columns(table)
                ],
                "primary key": inspector.get_pk_constraint(table),
                "foreign keys": inspector.get_foreign_keys(table),
                "unique": inspector.get_unique_constraints(table),
                "indexes": sorted(inspector.get_indexes(table), key=lambda one: str(one["name"])),
            }
            for table in inspector.get_table_names()
        },
    }


def test_new_directory_has_the_tables_that_migrations_lead_to(
    directory: SqlDirectory, location: Location
) -> None:
    assert directory.revision() == 0
    database = open_database(location)
    with database.write_engine.begin() as connection:
        created = described(connection)
        METADATA.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
        run_migrations(connection, "it")
        assert described(connection) == created
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
    database.read_engine.dispose()
    assert created["rows"] == [(1, 0, SCHEMA_VERSION)]
    assert len(created) > len(METADATA.tables)


def test_websites_of_the_first_schema_have_no_retention_of_their_own(
    location: Location, clock: FixedClock
) -> None:
    directory = open_directory(location, clock)
    website = directory.create_website(name="Blog")
    directory.close()
    database = open_database(location)
    with database.write_engine.begin() as connection:
        connection.execute(text("ALTER TABLE websites DROP COLUMN retention"))
        connection.execute(text("ALTER TABLE api_keys DROP COLUMN kind"))
        connection.execute(text("ALTER TABLE api_keys DROP COLUMN parent_id"))
        connection.execute(text("DROP TABLE sign_in_codes"))
        connection.execute(text("DROP TABLE audit_log"))
        connection.execute(text("DROP TABLE saved_queries"))
        for name in ("erasure_parts", "erasures", "machines", "erasure_key"):
            connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    database.read_engine.dispose()
    migrated = reopened(location)
    assert migrated.websites() == (website,)
    migrated.close()


def test_directory_is_opened_again_as_it_was(location: Location, clock: FixedClock) -> None:
    first = open_directory(location, clock)
    first.create_website(name="Blog")
    before = first.tenancy()
    first.close()
    first.close()
    again = reopened(location)
    assert again.tenancy() == before
    again.close()


def test_directory_of_a_newer_version_is_rejected(location: Location, clock: FixedClock) -> None:
    open_directory(location, clock).close()
    database = open_database(location)
    with database.write_engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.read_engine.dispose()
    assert rejection(lambda: open_directory(location, clock)) == (
        f"the directory {database.label} was written by a newer version of Headrace "
        f"(its schema is 9999, this version supports {SCHEMA_VERSION}): use that version"
    )


def test_file_and_directory_are_accessible_by_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "data" / "directory.sqlite"
    open_directory(path, FixedClock(NOON)).close()
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (path.parent, *path.parent.iterdir())}
    assert modes == {
        "data": 0o700,
        "directory.sqlite": 0o600,
        "directory.sqlite-journal": 0o600,
    }


def test_change_waits_for_the_change_of_another_process(tmp_path: Path) -> None:
    path = tmp_path / "directory.sqlite"
    directory = open_directory(path, FixedClock(NOON))
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    end = threading.Timer(0.1, other.execute, ("COMMIT",))
    end.start()
    assert directory.revision() == 0
    assert directory.create_organization("acme").name == "acme"
    end.join()
    other.close()
    directory.close()


def _not_a_database(folder: Path) -> Location:
    (folder / "directory.sqlite").write_bytes(b"something else altogether\n" * 100)
    return folder / "directory.sqlite"


def _below_a_file(folder: Path) -> Location:
    (folder / "data").touch()
    return folder / "data" / "directory.sqlite"


INVALID_DATABASES: dict[str, tuple[Callable[[Path], Location], str]] = {
    "not a database": (
        _not_a_database,
        "cannot use the directory {0}/directory.sqlite: file is not a database",
    ),
    "a file in the way": (
        _below_a_file,
        "cannot write {0}/data/directory.sqlite: file exists",
    ),
    "a directory": (lambda folder: folder, "cannot write {0}: is a directory"),
    "memory": (
        lambda _: "sqlite://",
        "the directory must be a file: several processes share it",
    ),
    "another database": (
        lambda _: "mysql://me:hush@localhost/headrace",
        "the directory must be in SQLite or PostgreSQL, not in mysql",
    ),
    "a port that is none": (
        lambda _: "postgresql://me@localhost:hush/headrace",
        "the directory's URL is not a database URL",
    ),
    "a URL of nothing": (
        lambda _: "http//://me:hush@",
        "the directory's URL is not a database URL",
    ),
}


@pytest.mark.parametrize(
    ("make", "sentence"), INVALID_DATABASES.values(), ids=INVALID_DATABASES.keys()
)
def test_error_names_the_unusable_database(
    tmp_path: Path, make: Callable[[Path], Location], sentence: str
) -> None:
    location = make(tmp_path)
    message = rejection(lambda: open_directory(location, FixedClock(NOON)))
    assert message == sentence.format(tmp_path)


def test_missing_driver_is_named_without_the_password() -> None:
    message = rejection(
        lambda: open_directory("postgresql+nodriver://me:hush@localhost/db", FixedClock(NOON))
    )
    assert message.startswith("the driver that the directory's URL asks for is not installed: ")
    assert "hush" not in message


def test_no_password_of_the_url_is_in_its_name() -> None:
    url = "postgresql://me:hush@localhost/db?password=hush&sslpassword=hush&sslmode=require"
    assert open_database(url).label == "postgresql+psycopg://me:***@localhost/db?sslmode=require"
