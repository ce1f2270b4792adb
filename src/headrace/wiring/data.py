"""Locks a data directory and migrates its format before a service or a command uses it."""

import contextlib
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from headrace.adapters.data_dir.access import restrict_access
from headrace.adapters.data_dir.files import create_private_directory
from headrace.adapters.data_dir.format import (
    ensure_format_marker,
    has_current_format,
    migrate_data_dir,
)
from headrace.adapters.data_dir.lock import SERVE_COMMAND, lock_data_dir, running_service
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.data_dir.runtime_directory import runtime_directory
from headrace.adapters.data_dir.sqlite_files import separate_sqlite_files
from headrace.adapters.directory.schema_version import check_schema_version, has_older_schema
from headrace.adapters.store_migration.migration_state import check_not_migrated_away
from headrace.base.errors import OperatorError, system_reason
from headrace.base.settings import Settings, data_path
from headrace.wiring.directory_file import check_database_of_service, has_external_directory
from headrace.wiring.store_address import clickhouse_address

_MIGRATION_POLL_S: Final = 0.05
_MIGRATION_POLLS: Final = 40
"""Two seconds: a service that starts migrates its directory within the first one."""


class ServiceRuntime(Struct, frozen=True):
    """The directory for a service's socket and metrics.

    `publish` writes its path to where commands look for it, and returns whether that succeeded.
    Blocking; safe to repeat.
    """

    directory: Path
    publish: Callable[[], bool]


@contextlib.contextmanager
def locked_for_service(settings: Settings) -> Generator[ServiceRuntime]:
    """Lock the data directory for a service, and migrate it to the newest format.

    Yields the runtime directory, which is not published yet. Raises `OperatorError` when another
    process has the lock, a newer version wrote the directory, or its rows were migrated away.
    """
    root = data_path(settings)
    has_store = clickhouse_address(settings) is None
    has_directory = not has_external_directory(settings)
    with lock_data_dir(
        root, SERVE_COMMAND, has_store=has_store, has_directory=has_directory
    ) as publish_runtime_dir:
        check_not_migrated_away(root, has_store=has_store)
        restrict_access(root)
        separate_sqlite_files(root)
        check_schema_version(DataDirPaths(root).directory)
        migrate_data_dir(root)
        with runtime_directory(root) as runtime:
            yield ServiceRuntime(runtime, partial(publish_runtime_dir, runtime))


@contextlib.contextmanager
def locked_for_command(settings: Settings, command: str) -> Generator[None]:
    """Lock the data directory for a command, and migrate it to the newest format.

    Raises `DataDirLocked` when a service or another command has the lock, and `OperatorError` when
    a newer version wrote the directory.
    """
    root = data_path(settings)
    with lock_data_dir(root, command):
        restrict_access(root)
        separate_sqlite_files(root)
        check_schema_version(DataDirPaths(root).directory)
        migrate_data_dir(root)
        yield


def create_data_dir(settings: Settings) -> None:
    """Create the data directory and its parents, for their owner only, unless it exists.

    Raises `OperatorError`.
    """
    root = data_path(settings)
    try:
        create_private_directory(root)
    except OSError as error:
        raise OperatorError(f"cannot create {root}: {system_reason(error)}") from error


def require_data(settings: Settings) -> None:
    """Raise `OperatorError` for a directory without data. Creates nothing."""
    paths = data_dir_paths(settings)
    if not paths.has_data:
        raise OperatorError(f"{paths.root} is not a data directory: it contains no data")


def migrate_data_dir_if_idle(settings: Settings) -> None:
    """Migrate the data directory to the newest format, under its lock, for a command.

    A directory that has that format already is not locked: a service may be using it. One that has
    just started is waited for, because it migrates the directory itself. Raises `OperatorError`;
    also where the service that uses it is of an older version, which could not use what is
    migrated, or has its websites and keys elsewhere.
    """
    root = data_path(settings)
    ensure_format_marker(root)
    check_database_of_service(settings)
    if _is_older_under_a_service(settings):
        raise OperatorError(
            f"the service that uses {root} is of an older version than this command, or still "
            "starting: stop or upgrade it before the data directory is migrated"
        )
    if not has_current_format(root):
        with lock_data_dir(root, "another headrace command"):
            migrate_data_dir(root)


def _is_older_under_a_service(settings: Settings) -> bool:
    """Return whether a service runs that does not migrate what a command would migrate."""
    root = data_path(settings)
    for _ in range(_MIGRATION_POLLS):
        if not _is_older(settings) or running_service(root) is None:
            return False
        time.sleep(_MIGRATION_POLL_S)
    return True


def _is_older(settings: Settings) -> bool:
    """Return whether a command would migrate the data directory, or its websites and keys."""
    paths = data_dir_paths(settings)
    if not has_current_format(paths.root):
        return True
    return not has_external_directory(settings) and has_older_schema(paths.directory)


def data_dir_paths(settings: Settings) -> DataDirPaths:
    """Return the paths in the configured data directory."""
    return DataDirPaths(data_path(settings))
