"""Who may use a data directory, and in which format it is."""

import contextlib
from collections.abc import Generator
from pathlib import Path

from headrace.adapters.data_dir.format import is_current, migrate
from headrace.adapters.data_dir.lock import SERVE, hold_data
from headrace.adapters.data_dir.paths import DataPlaces
from headrace.adapters.data_dir.runtime_directory import runtime_directory
from headrace.adapters.store_migration.migration_state import check_moves
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, data_path
from headrace.wiring.store_address import clickhouse_of

ENGINE_SOCKET = "engine.socket"


@contextlib.contextmanager
def held_for_service(settings: Settings) -> Generator[Path]:
    """Hold the data directory, brought to the newest format, for a service.

    Gives the directory for the service's socket and metrics. Raises `OperatorError` when somebody
    else holds the data directory, a newer version wrote it, or its rows have moved elsewhere.
    """
    root = data_path(settings)
    has_store = clickhouse_of(settings) is None
    with hold_data(root, SERVE, has_store=has_store) as tell_runtime:
        check_moves(root, has_store=has_store)
        migrate(root)
        with runtime_directory(root) as runtime:
            tell_runtime(runtime)
            yield runtime


@contextlib.contextmanager
def held_for(settings: Settings, command: str) -> Generator[None]:
    """Hold the data directory, brought to the newest format, for a command while no service runs.

    Raises as `held_for_service` does, `DataHeld` when somebody else holds it.
    """
    with hold_data(data_path(settings), command):
        migrate(data_path(settings))
        yield


def check_there_is_data(settings: Settings) -> None:
    """Refuse a directory in which nothing is kept, with `OperatorError`; makes nothing there."""
    places = places_of(settings)
    if not places.has_data:
        raise OperatorError(f"{places.root} is no data directory: nothing is kept there")


def check_data(settings: Settings) -> None:
    """Bring the data directory to the newest format if nobody else uses it.

    Where it is in that format already, it may be in use. Raises `OperatorError`.
    """
    root = data_path(settings)
    if not is_current(root):
        with hold_data(root, "another headrace command"):
            migrate(root)


def places_of(settings: Settings) -> DataPlaces:
    """Return the paths of the data directory that the settings name."""
    return DataPlaces(data_path(settings))
