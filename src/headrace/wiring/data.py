"""Who may use a data directory, and in which format it is."""

import contextlib
from collections.abc import Generator
from pathlib import Path

from headrace.adapters.data_dir.format import ensure_current_format, migrate_data_dir
from headrace.adapters.data_dir.lock import SERVE_COMMAND, lock_data_dir
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.data_dir.runtime_directory import runtime_directory
from headrace.adapters.store_migration.migration_state import check_not_migrated_away
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, data_path
from headrace.wiring.store_address import clickhouse_address

ENGINE_SOCKET = "engine.socket"


@contextlib.contextmanager
def locked_for_service(settings: Settings) -> Generator[Path]:
    """Hold the data directory, brought to the newest format, for a service.

    Gives the directory for the service's socket and metrics. Raises `OperatorError` when somebody
    else holds the data directory, a newer version wrote it, or its rows have moved elsewhere.
    """
    root = data_path(settings)
    has_store = clickhouse_address(settings) is None
    with lock_data_dir(root, SERVE_COMMAND, has_store=has_store) as publish_runtime_dir:
        check_not_migrated_away(root, has_store=has_store)
        migrate_data_dir(root)
        with runtime_directory(root) as runtime:
            publish_runtime_dir(runtime)
            yield runtime


@contextlib.contextmanager
def locked_for_command(settings: Settings, command: str) -> Generator[None]:
    """Hold the data directory, brought to the newest format, for a command while no service runs.

    Raises as `locked_for_service` does, `DataDirLocked` when somebody else holds it.
    """
    with lock_data_dir(data_path(settings), command):
        migrate_data_dir(data_path(settings))
        yield


def require_data(settings: Settings) -> None:
    """Refuse a directory in which nothing is kept, with `OperatorError`; makes nothing there."""
    paths = data_dir_paths(settings)
    if not paths.has_data:
        raise OperatorError(f"{paths.root} is no data directory: nothing is kept there")


def migrate_data_dir_if_idle(settings: Settings) -> None:
    """Bring the data directory to the newest format if nobody else uses it.

    Where it is in that format already, it may be in use. Raises `OperatorError`.
    """
    root = data_path(settings)
    if not ensure_current_format(root):
        with lock_data_dir(root, "another headrace command"):
            migrate_data_dir(root)


def data_dir_paths(settings: Settings) -> DataDirPaths:
    """Return the paths of the data directory that the settings name."""
    return DataDirPaths(data_path(settings))
