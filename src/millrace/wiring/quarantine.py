"""What reads the quarantine of a data directory and puts entries back on their way."""

from millrace.adapters.quarantine_desk import QuarantineDesk
from millrace.base.clock import Clock
from millrace.base.settings import Settings
from millrace.wiring.data import check_data
from millrace.wiring.places import places_of


def quarantine_of(settings: Settings, clock: Clock) -> QuarantineDesk:
    """Return the desk of a data directory. Raises `OperatorError` when a newer version wrote it."""
    places = places_of(settings)
    if places.root.exists():
        check_data(settings)
    return QuarantineDesk(places.quarantine, log_root=places.log, clock=clock)
