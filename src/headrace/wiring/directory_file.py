"""The file of websites and keys: where it must be, and what is said when it is lost.

Opening a missing SQLite file creates it: all keys would be unknown, and clients discard events that
are rejected for that. A command would create keys that the service does not know.
"""

from headrace.adapters.backup.lost_files import has_logged, lost_state
from headrace.adapters.data_dir.lock import has_directory_elsewhere, running_service
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, data_path


def has_external_directory(settings: Settings) -> bool:
    """Return whether a database server stores the directory, not the data directory."""
    return bool(settings.database_url or settings.database_url_file)


def is_directory_lost(settings: Settings) -> bool:
    """Return whether the data directory has events, but no file of websites and keys."""
    return _lost_state(settings) is not None


def check_directory_file(settings: Settings) -> None:
    """Raise `OperatorError` where websites and keys are lost, or the running service reads others.

    They are lost where the data directory has events, but no websites and keys.
    """
    root = data_path(settings)
    if not has_external_directory(settings) and has_directory_elsewhere(root):
        raise OperatorError(
            f"the service that uses {root} has its websites and keys in PostgreSQL: set "
            "HEADRACE_DATABASE_URL or HEADRACE_DATABASE_URL_FILE as for the service"
        )
    state = _lost_state(settings)
    if state is not None:
        raise OperatorError(
            f"{DataDirPaths(root).directory} is {state}, but there are events of its "
            "websites: restore a backup, or set HEADRACE_DATABASE_URL if the websites and keys are "
            "in PostgreSQL"
        )


def check_database_of_service(settings: Settings) -> None:
    """Raise `OperatorError` for a command that would use PostgreSQL beside a service that does not.

    Only commands call it: the lock file of a service that started on a full disk may name an
    earlier service.
    """
    if not has_external_directory(settings):
        return
    service = running_service(root := data_path(settings))
    if service is not None and service.has_directory:
        raise OperatorError(
            f"the service that uses {root} has its websites and keys there, not in PostgreSQL: "
            "unset HEADRACE_DATABASE_URL and HEADRACE_DATABASE_URL_FILE, or name another data "
            "directory"
        )


def _lost_state(settings: Settings) -> str | None:
    if has_external_directory(settings):
        return None
    paths = DataDirPaths(data_path(settings))
    state = lost_state(paths.directory)
    return state if state is not None and has_logged(paths) else None
