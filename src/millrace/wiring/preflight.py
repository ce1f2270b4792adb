"""What can be found wrong before any process is started."""

from millrace.adapters.geo import open_geo
from millrace.base.settings import Settings


def check_files(settings: Settings) -> None:
    """Open what the settings name. Raises `OperatorError`."""
    open_geo(settings.geo_database).close()
