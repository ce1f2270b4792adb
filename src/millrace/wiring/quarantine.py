"""What reads the quarantine of a data directory and puts entries back on their way."""

from millrace.adapters.quarantine_desk import QuarantineDesk
from millrace.base.clock import Clock
from millrace.base.settings import Settings, data_path
from millrace.wiring.data import check_data
from millrace.wiring.places import LOG_DIRECTORY, QUARANTINE_DIRECTORY


def quarantine_of(settings: Settings, clock: Clock) -> QuarantineDesk:
    """Return the desk of a data directory. Raises `OperatorError` when a newer version wrote it."""
    if data_path(settings).exists():
        check_data(settings)
    return QuarantineDesk(
        data_path(settings, QUARANTINE_DIRECTORY),
        log_root=data_path(settings, LOG_DIRECTORY),
        clock=clock,
    )
