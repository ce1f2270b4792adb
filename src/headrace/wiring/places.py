"""Where things stand: in the data directory, and in the directory of a running service."""

from headrace.adapters.places.places import DataPlaces
from headrace.base.settings import Settings, data_path

ENGINE_SOCKET = "engine.socket"


def places_of(settings: Settings) -> DataPlaces:
    """Return the paths of the data directory that the settings name."""
    return DataPlaces(data_path(settings))
