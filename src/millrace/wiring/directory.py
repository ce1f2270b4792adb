"""Which directory of websites and keys a data directory has."""

from millrace.adapters.sql_directory import SqlDirectory, open_directory
from millrace.base.clock import Clock
from millrace.base.settings import Settings
from millrace.wiring.places import places_of


def open_directory_of(settings: Settings, clock: Clock) -> SqlDirectory:
    """Open the directory, made and migrated where that is due. Blocking."""
    return open_directory(places_of(settings).directory, clock)
