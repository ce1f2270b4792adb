"""Migrates the directory's tables to the newest schema when it is opened."""

from sqlalchemy import Connection, String, column, inspect, select, table, text

from headrace.adapters.directory.connection import DirectoryDatabase
from headrace.adapters.directory.tables import SCHEMA_VERSION
from headrace.base.errors import OperatorError

_VERSIONS = table("alembic_version")


def migrate_schema(database: DirectoryDatabase) -> None:
    """Run the missing migrations in one transaction.

    Safe to call from several processes at once: one migrates, the others wait for it. Raises
    `OperatorError` when a newer version of Headrace wrote the directory.
    """
    with database.read_engine.connect() as connection:
        if _schema_version(connection) == SCHEMA_VERSION:
            return
    with database.write_engine.begin() as connection:
        if database.schema_lock is not None:
            connection.execute(text(database.schema_lock))
        if _schema_version(connection) != SCHEMA_VERSION:
            _upgrade(connection, database.label)


def _schema_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSIONS.name):
        return None
    query = select(column("version_num", String)).select_from(_VERSIONS)
    version: str | None = connection.scalar(query)
    return version


def _upgrade(connection: Connection, label: str) -> None:
    from alembic import command  # noqa: PLC0415 - takes 0.2 s, needed once for each schema
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", "headrace.adapters.directory:migrations")
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    version = _schema_version(connection)
    if version is not None and version not in known:
        raise OperatorError(
            f"the directory {label} was written by a newer version of Headrace "
            f"(its schema is {version}, this version supports {SCHEMA_VERSION}): use that version"
        )
    command.upgrade(config, "head")
