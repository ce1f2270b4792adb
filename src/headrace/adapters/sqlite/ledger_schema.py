"""The tables of the ledger, and their migration from earlier versions."""

import sqlite3
from pathlib import Path
from typing import Final

from headrace.adapters.sqlite.known_ids import KNOWN_IDS_SCHEMA, KnownIds
from headrace.base.errors import OperatorError
from headrace.formats.event_ids import EVENT_ID_DIGEST_BYTES, keyless_digest

SCHEMA_VERSION: Final = 7
_VERSION_OF_ID_RUNS: Final = 6
_SCHEMA = """
    BEGIN;
    CREATE TABLE ledger (identity TEXT NOT NULL, last_batch INTEGER NOT NULL, intent BLOB);
    INSERT INTO ledger VALUES (lower(hex(randomblob(8))), 0, NULL);
    CREATE TABLE positions (log TEXT PRIMARY KEY, segment INTEGER NOT NULL, place INTEGER NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE parts (token TEXT PRIMARY KEY, outcome TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE seen (digest BLOB PRIMARY KEY, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE store (name TEXT PRIMARY KEY, identity TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE losses (what TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE imported (log_number INTEGER PRIMARY KEY, last_offset BLOB NOT NULL) WITHOUT ROWID;
    PRAGMA user_version = 5;
    COMMIT;
"""
_TO_VERSION_2 = """
    BEGIN;
    DROP INDEX IF EXISTS seen_by_expiry;
    PRAGMA user_version = 2;
    COMMIT;
"""
_TO_VERSION_3 = """
    BEGIN;
    INSERT OR IGNORE INTO seen SELECT keyless_digest(digest), expires_ms FROM seen
        WHERE is_event_id(digest);
    PRAGMA user_version = 3;
    COMMIT;
"""
_TO_VERSION_4 = """
    BEGIN;
    CREATE TABLE store (name TEXT PRIMARY KEY, identity TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE losses (what TEXT PRIMARY KEY) WITHOUT ROWID;
    PRAGMA user_version = 4;
    COMMIT;
"""
_TO_VERSION_5 = """
    BEGIN;
    CREATE TABLE imported (log_number INTEGER PRIMARY KEY, last_offset BLOB NOT NULL) WITHOUT ROWID;
    PRAGMA user_version = 5;
    COMMIT;
"""
_TO_VERSION_6 = """
    ALTER TABLE seen RENAME TO seen_before;
    CREATE TABLE seen (digest BLOB PRIMARY KEY, expires_ms INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO seen SELECT * FROM seen_before WHERE NOT is_event_id(digest);
"""
_TO_VERSION_7 = """
    BEGIN;
    CREATE TABLE requeued (log TEXT, segment INTEGER, place INTEGER, item INTEGER,
        received_ms INTEGER NOT NULL, PRIMARY KEY (log, segment, place, item)) WITHOUT ROWID;
    PRAGMA user_version = 7;
    COMMIT;
"""
_MIGRATIONS = (_TO_VERSION_2, _TO_VERSION_3, _TO_VERSION_4, _TO_VERSION_5)
"""From version 1 on. Up to version 2, requests with and without an API key had one namespace of
event ids: an id that is known then stays known in both. Up to version 5, event ids were in `seen`;
moving them takes two seconds for a million. Up to version 6, where the logs were loaded again, a
retried item was rejected again."""

_CACHE_KIB = 8_192
_MAX_KEPT_WAL_BYTES = 64 * 1024 * 1024
_MOVED_AT_ONCE = 131_072
_MOVED_BATCH = 0
"""Stands for the batch of moved ids. The first batch of a ledger has the number 1."""


def prepare_ledger(connection: sqlite3.Connection, path: Path) -> None:
    """Lock the ledger and create or migrate its tables. Raises `OperatorError`."""
    try:
        _set_pragmas(connection)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        _migrate(connection, version)
    except sqlite3.OperationalError as error:
        reason = "in use by another process" if "locked" in str(error) else f"unusable: {error}"
        raise OperatorError(f"the ledger {path} is {reason}") from error
    except sqlite3.DatabaseError as error:
        raise OperatorError(f"the ledger {path} is damaged: {error}") from error
    if version > SCHEMA_VERSION:
        raise OperatorError(
            f"the ledger {path} was written by a newer version of Headrace (its schema is "
            f"{version}, this version supports {SCHEMA_VERSION}): use that version"
        )


def _set_pragmas(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute(f"PRAGMA journal_size_limit = {_MAX_KEPT_WAL_BYTES}")
    connection.execute("PRAGMA secure_delete = OFF")  # hashes, and overwriting them takes longer


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    connection.create_function("keyless_digest", 1, keyless_digest, deterministic=True)
    connection.create_function("is_event_id", 1, _is_event_id, deterministic=True)
    if version == 0:
        connection.executescript(_SCHEMA)
    elif version <= len(_MIGRATIONS):
        for migration in _MIGRATIONS[version - 1 :]:
            connection.executescript(migration)
    if version < _VERSION_OF_ID_RUNS:
        _move_event_ids(connection)
    if version < SCHEMA_VERSION:
        connection.executescript(_TO_VERSION_7)


def _move_event_ids(connection: sqlite3.Connection) -> None:
    """Migrate from version 5 to 6, in one transaction."""
    connection.executescript(f"BEGIN; {KNOWN_IDS_SCHEMA} {_TO_VERSION_6}")
    known_ids = KnownIds(connection)
    ids = connection.execute("SELECT digest, expires_ms FROM seen_before WHERE is_event_id(digest)")
    while rows := ids.fetchmany(_MOVED_AT_ONCE):
        known_ids.add(_MOVED_BATCH, dict(rows))
    for statement in ("DROP TABLE seen_before", "PRAGMA user_version = 6", "COMMIT"):
        connection.execute(statement)  # executescript would commit before the first of them


def _is_event_id(digest: bytes) -> bool:
    """Return whether a digest is one of an event id; those of idempotency keys are longer."""
    return len(digest) == EVENT_ID_DIGEST_BYTES
