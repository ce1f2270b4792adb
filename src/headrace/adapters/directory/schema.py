"""Creates the directory's tables, or migrates them to the newest schema, when it is opened."""

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    inspect,
    select,
    text,
)

from headrace.adapters.directory.connection import DirectoryDatabase
from headrace.adapters.directory.schema_version import SCHEMA_VERSION, newer_schema_error
from headrace.adapters.directory.tables import DIRECTORY_REVISION, METADATA

_VERSIONS = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As Alembic makes it."""


def migrate_schema(database: DirectoryDatabase) -> None:
    """Create the tables, or run the missing migrations, in one transaction.

    Safe to call from several processes at once: one migrates, the others wait for it. Raises
    `OperatorError` when a newer version of Headrace wrote the directory.
    """
    with database.read_engine.connect() as connection:
        if _schema_version(connection) == SCHEMA_VERSION:
            return
    with database.write_engine.begin() as connection:
        if database.schema_lock is not None:
            connection.execute(text(database.schema_lock))
        version = _schema_version(connection)
        if version is None:
            _create_tables(connection)
        elif version != SCHEMA_VERSION:
            run_migrations(connection, database.label)


def _schema_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSIONS.name):
        return None
    version: str | None = connection.scalar(select(_VERSIONS.c.version_num))
    return version


def _create_tables(connection: Connection) -> None:
    """Create the tables of the newest schema: a first start takes half as long without Alembic."""
    METADATA.create_all(connection, checkfirst=False)
    _VERSIONS.create(connection, checkfirst=False)
    connection.execute(DIRECTORY_REVISION.insert().values(id=1, revision=0))
    connection.execute(_VERSIONS.insert().values(version_num=SCHEMA_VERSION))


def run_migrations(connection: Connection, label: str) -> None:
    """Run the migrations that a directory lacks, from an empty one on.

    Raises `OperatorError` when a newer version of Headrace wrote it; `label` names it.
    """
    from alembic import command  # noqa: PLC0415 - takes 0.2 s, needed once for each schema
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", "headrace.adapters.directory:migrations")
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    version = _schema_version(connection)
    if version is not None and version not in known:
        raise newer_schema_error(label, version)
    command.upgrade(config, "head")
