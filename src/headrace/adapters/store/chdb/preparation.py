"""Creates and migrates the tables of the embedded store."""

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.chdb.files.metadata_copy import make_metadata_durable
from headrace.adapters.store.chdb.table_identity import table_directories
from headrace.adapters.store.dialect.ddl import (
    CREATE_VERSION_TABLE,
    SELECT_VERSION,
    Migration,
    pending_migrations,
    record_versions,
)
from headrace.adapters.store.dialect.statements import render
from headrace.model.storage import STORAGE_TABLES


def prepare_tables(
    chdb: ChdbInstance, session: ChdbSession, migrations: tuple[Migration, ...], *, database: str
) -> None:
    """Create the tables, or run the pending migrations: all of them where a table is missing.

    `session` writes to the database. Raises `OperatorError` when a newer Headrace wrote the tables,
    else `ClickHouseError` or `OSError`.
    """
    session.execute(render(CREATE_VERSION_TABLE))
    ((version,),) = session.execute(SELECT_VERSION)
    pending = pending_migrations(version, migrations)
    existing = table_directories(chdb, database)
    if not existing:
        _create_tables(session, migrations)
        make_metadata_durable(chdb.directory, database)
        session.execute(record_versions(*migrations))
        return
    due = pending if existing.keys() == STORAGE_TABLES.keys() else migrations
    if due:  # chDB overwrites definitions, which a full disk ends, and old versions made no copy
        make_metadata_durable(chdb.directory, database)
    for migration in due:
        _run(session, migration)
        make_metadata_durable(chdb.directory, database)
        session.execute(record_versions(migration))


def _create_tables(session: ChdbSession, migrations: tuple[Migration, ...]) -> None:
    """Create all tables as they are now: every migration would take three times as long.

    Until their versions are recorded, the next start runs them all.
    """
    for migration in migrations:
        if not migration.is_in_new_tables:
            _run(session, migration)


def _run(session: ChdbSession, migration: Migration) -> None:
    for statement in migration.statements:
        session.execute(render(statement))
