"""What can be found wrong before any process is started."""

from headrace.adapters.visitors.geo import open_geo
from headrace.base.settings import Settings
from headrace.wiring.store_address import check_store_settings


def check_files(settings: Settings) -> None:
    """Look at what the settings name. Raises `OperatorError`."""
    open_geo(settings.geo_database).close()
    check_store_settings(settings)
