"""Who may use a data directory, and in which format it is."""

import contextlib
from collections.abc import Generator
from pathlib import Path

from millrace.adapters.data_format import is_current, migrate
from millrace.adapters.data_lock import SERVE, hold_data
from millrace.adapters.runtime_directory import runtime_directory
from millrace.base.settings import Settings, data_path


@contextlib.contextmanager
def held_for_service(settings: Settings) -> Generator[Path]:
    """Hold the data directory, brought to the newest format, for a service.

    Gives the directory for the service's socket and metrics. Raises `OperatorError` when somebody
    else holds the data directory, or a newer version wrote it.
    """
    root = data_path(settings)
    with hold_data(root, SERVE) as tell_runtime:
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


def check_data(settings: Settings) -> None:
    """Bring the data directory to the newest format if nobody else uses it.

    Where it is in that format already, it may be in use. Raises `OperatorError`.
    """
    root = data_path(settings)
    if not is_current(root):
        with hold_data(root, "another millrace command"):
            migrate(root)
