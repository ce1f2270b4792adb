"""The file of websites and keys: where it must be, and what is said when it is lost.

Opening a missing SQLite file creates it: all keys would be unknown, and clients discard events that
are rejected for that.
"""

from headrace.adapters.backup.lost_files import has_logged, lost_state
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings
from headrace.wiring.data import data_dir_paths


def has_external_directory(settings: Settings) -> bool:
    """Return whether a database server stores the directory, not the data directory."""
    return bool(settings.database_url or settings.database_url_file)


def is_directory_lost(settings: Settings) -> bool:
    """Return whether the data directory has events, but no file of websites and keys."""
    return _lost_state(settings) is not None


def check_directory_file(settings: Settings) -> None:
    """Raise `OperatorError` where the data directory has events, but no websites and keys."""
    state = _lost_state(settings)
    if state is not None:
        raise OperatorError(
            f"{data_dir_paths(settings).directory} is {state}, but there are events of its "
            "websites: restore a backup, or set HEADRACE_DATABASE_URL if the websites and keys are "
            "in PostgreSQL"
        )


def _lost_state(settings: Settings) -> str | None:
    if has_external_directory(settings):
        return None
    paths = data_dir_paths(settings)
    state = lost_state(paths.directory)
    return state if state is not None and has_logged(paths) else None
