"""What reads the quarantine of a data directory and puts entries back on their way."""

import contextlib
from collections.abc import Generator

from headrace.adapters.data_dir.lock import SERVE, DataHeld
from headrace.adapters.quarantine.requeuer import QuarantineDesk
from headrace.base.clock import Clock
from headrace.base.settings import Settings
from headrace.ingest.load.requeue import restore_record
from headrace.wiring.data import check_data, check_there_is_data, held_for, places_of


def quarantine_of(settings: Settings, clock: Clock) -> QuarantineDesk:
    """Return the desk of a data directory.

    Raises `OperatorError` when nothing is kept there, or a newer version wrote it.
    """
    places = places_of(settings)
    check_there_is_data(settings)
    check_data(settings)
    return QuarantineDesk(
        places.quarantine, log_root=places.log, restore_record=restore_record, clock=clock
    )


@contextlib.contextmanager
def retrying_desk(settings: Settings, clock: Clock) -> Generator[QuarantineDesk]:
    """Give the desk, and keep restores and backups away while no service runs.

    Beside a service the log's own lock is enough. Raises `OperatorError`, `DataHeld` when another
    command holds the data directory.
    """
    check_there_is_data(settings)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(held_for(settings, "headrace quarantine retry"))
        except DataHeld as refusal:
            if refusal.holder.command != SERVE:
                raise
        yield quarantine_of(settings, clock)
