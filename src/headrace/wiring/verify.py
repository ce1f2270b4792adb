"""What checks a data directory whose service is stopped."""

import contextlib
from collections.abc import Generator, Sequence
from pathlib import Path

from headrace.adapters.backup.check import (
    LedgerContents,
    check_files,
    check_logs,
    read_ledger,
    rows_of_logs,
)
from headrace.adapters.data_dir.lock import SERVE, DataHeld
from headrace.adapters.data_dir.paths import DataPlaces
from headrace.adapters.store.chdb.check import check_store
from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.adapters.store.clickhouse.check import check_clickhouse
from headrace.adapters.store.dialect.reports import ExpectedRows, KnownPlaces, StoreReport
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, data_path
from headrace.base.telemetry import get_logger
from headrace.model.integrity import Findings, Problem
from headrace.wiring.data import check_there_is_data, held_for
from headrace.wiring.shared import shares_directory, shares_repeats
from headrace.wiring.store_address import clickhouse_of, reading_clickhouse_of


def verify(settings: Settings) -> Findings:
    """Read everything that is kept, and tell what is wrong.

    Raises `OperatorError` when the service runs, or there is nothing to check.
    """
    places = DataPlaces(data_path(settings))
    check_there_is_data(settings)
    with _stopped(settings):
        files = list(check_files(places, elsewhere=_kept_elsewhere(settings)))
        is_ledger_sound = all(problem.part != "ledger" for problem in files)
        ledger = read_ledger(places) if is_ledger_sound else LedgerContents()
        logs = check_logs(places, ledger)
        store = _check_store(settings, places, ledger)
    return Findings(
        problems=(*files, *logs.problems, *(Problem("store", fault) for fault in store.faults)),
        logs=logs.logs,
        records=logs.records,
        parts=store.parts,
        rows=store.rows,
    )


@contextlib.contextmanager
def _stopped(settings: Settings) -> Generator[None]:
    try:
        with held_for(settings, "headrace verify"):
            yield
    except DataHeld as refusal:
        if refusal.holder.command != SERVE:
            raise
        raise OperatorError(
            f"the service runs on {settings.data}: stop it first, or verify a restored backup"
        ) from refusal


def _kept_elsewhere(settings: Settings) -> frozenset[Path]:
    """Return the files that the service keeps on other servers instead."""
    places = DataPlaces(data_path(settings))
    directory = {places.directory} if shares_directory(settings) else set[Path]()
    repeats = {places.repeats} if shares_repeats(settings) else set[Path]()
    return frozenset(directory | repeats)


def _check_store(settings: Settings, places: DataPlaces, ledger: LedgerContents) -> StoreReport:
    address = reading_clickhouse_of(settings) or clickhouse_of(settings)
    if address is not None:
        expected = rows_of_logs(places, ledger)
        return check_clickhouse(address, identity=ledger.identity, expected=expected)
    if places.store.exists():
        return _check_embedded(places.store, ledger.known_places(), rows_of_logs(places, ledger))
    missing = ("it is missing, and the ledger says what is in it",) if ledger.positions else ()
    return StoreReport(missing, parts=0, rows=0)


def _check_embedded(
    store: Path, known: KnownPlaces | None, expected: Sequence[ExpectedRows]
) -> StoreReport:
    engine = ChdbEngine(store, log=get_logger())
    try:
        engine.open()
        return check_store(engine, known=known, expected=expected)
    except OperatorError as error:
        return StoreReport((str(error),), parts=0, rows=0)
    finally:
        engine.close()
