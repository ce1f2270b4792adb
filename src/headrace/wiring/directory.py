"""Which directory of websites and keys the settings name: one to share, or a file of our own."""

from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.base.clock import Clock
from headrace.base.settings import Settings, secret_text
from headrace.wiring.places import places_of


def open_directory_of(settings: Settings, clock: Clock) -> SqlDirectory:
    """Open the directory, made and migrated where that is due. Blocking."""
    url = secret_text(settings, "directory")
    return open_directory(url or places_of(settings).directory, clock)


def shares_directory(settings: Settings) -> bool:
    """Tell whether the directory is outside of the data directory."""
    return bool(settings.directory or settings.directory_file)
