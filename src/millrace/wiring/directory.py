"""Which directory of websites and keys a data directory has."""

from millrace.adapters.sql_directory import DIRECTORY_FILE, SqlDirectory, open_directory
from millrace.base.clock import Clock
from millrace.base.settings import Settings, data_path


def open_directory_of(settings: Settings, clock: Clock) -> SqlDirectory:
    """Open the directory, made and migrated where that is due. Blocking."""
    return open_directory(data_path(settings, DIRECTORY_FILE), clock)
