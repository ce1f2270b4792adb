"""What checks a data directory whose service is stopped."""

import contextlib
from collections.abc import Collection, Generator, Mapping
from pathlib import Path

from msgspec import Struct

from millrace.adapters.clickhouse.address import ClickHouseAddress
from millrace.adapters.clickhouse.check import check_clickhouse
from millrace.adapters.embedded.check import ExpectedRows, KnownPlaces, StoreReport, check_store
from millrace.adapters.embedded.engine import ChdbEngine
from millrace.adapters.embedded.expected_rows import expected_rows
from millrace.adapters.log.segment_check import LogReport, check_log
from millrace.adapters.places.lock import SERVE, DataHeld
from millrace.adapters.places.places import DataPlaces
from millrace.adapters.quarantine.desk import RETRY_LOG
from millrace.adapters.sqlite.check import sqlite_faults
from millrace.adapters.sqlite.ledger import SqliteLedger
from millrace.base.errors import OperatorError
from millrace.base.settings import Settings, data_path
from millrace.base.telemetry import get_logger
from millrace.model.findings import Findings, Problem
from millrace.ports.ledger import Intent, LogRange
from millrace.ports.log import LOG_START, LogPosition
from millrace.wiring.backup import check_there_is_data
from millrace.wiring.data import held_for
from millrace.wiring.directory import shares_directory
from millrace.wiring.shared import shares_repeats
from millrace.wiring.store_address import clickhouse_of, reading_clickhouse_of


class _Ledger(Struct, frozen=True):
    """What the ledger says: how far each log is stored, and what is under way."""

    identity: str
    positions: Mapping[str, LogPosition]
    intent: Intent | None

    def known_places(self) -> KnownPlaces:
        """Return what rows may be in the store."""
        return KnownPlaces(self.identity, self.stored_until())

    def stored_until(self) -> Mapping[str, LogPosition]:
        """Return, by the log's name, the place up to which something may be stored."""
        begun: Mapping[str, LogRange] = {} if self.intent is None else self.intent.ranges
        return {
            log: max(
                self.positions.get(log, LOG_START), begun[log].end if log in begun else LOG_START
            )
            for log in {*self.positions, *begun}
        }


def verify(settings: Settings) -> Findings:
    """Read everything that is kept, and tell what is wrong.

    Raises `OperatorError` when the service runs, or there is nothing to check.
    """
    places = DataPlaces(data_path(settings))
    check_there_is_data(places)
    with _stopped(settings):
        problems = list(_check_files(places, elsewhere=_kept_elsewhere(settings)))
        ledger = _read_ledger(places) if _is_sound(problems, "ledger") else None
        logs = _check_logs(places, ledger, problems)
        address = reading_clickhouse_of(settings) or clickhouse_of(settings)
        if address is None:
            store = _check_store(places, ledger, problems)
        else:
            store = _check_clickhouse(address, places, ledger, problems)
    return Findings(
        problems=tuple(problems),
        logs=len(logs),
        records=sum(report.records for report in logs),
        parts=store.parts,
        rows=store.rows,
    )


@contextlib.contextmanager
def _stopped(settings: Settings) -> Generator[None]:
    try:
        with held_for(settings, "millrace verify"):
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


def _check_files(places: DataPlaces, *, elsewhere: Collection[Path]) -> Generator[Problem]:
    """Check the SQLite files; a service that ever ran has all of them that are its own."""
    for part, path, loss in (
        ("directory", places.directory, "no website and no key is known"),
        ("ledger", places.ledger, "nobody knows what of the logs is stored"),
        ("repeats", places.repeats, "idempotency keys are not remembered"),
    ):
        if not path.exists():
            if places.log.exists() and path not in elsewhere:
                yield Problem(part, f"{path.name} is missing: {loss}")
            continue
        for fault in sqlite_faults(path):
            yield Problem(part, f"{path.name} is damaged: {fault}")


def _is_sound(problems: list[Problem], part: str) -> bool:
    return all(problem.part != part for problem in problems)


def _read_ledger(places: DataPlaces) -> _Ledger | None:
    if not places.ledger.exists():
        return None
    ledger = SqliteLedger.open(places.ledger)
    try:
        return _Ledger(ledger.identity(), ledger.positions(), ledger.intent())
    finally:
        ledger.close()


def _check_logs(
    places: DataPlaces, ledger: _Ledger | None, problems: list[Problem]
) -> list[LogReport]:
    positions: Mapping[str, LogPosition] = {} if ledger is None else ledger.positions
    reached: Mapping[str, LogPosition] = {} if ledger is None else ledger.stored_until()
    there = sorted(path for path in places.log.glob("*/"))
    reports = {path.name: check_log(path, loaded=positions.get(path.name)) for path in there}
    for log, report in reports.items():
        problems += [Problem("log", f"the log {log}: {fault}") for fault in report.faults]
    for log, position in reached.items():
        if log not in reports:
            problems.append(Problem("log", f"the log {log} is missing, which the ledger knows of"))
        elif position > reports[log].end:
            problems.append(_ahead(log, position, reports[log].end))
    return list(reports.values())


def _expected_rows(places: DataPlaces, ledger: _Ledger) -> list[ExpectedRows]:
    """List what must be in the store; nothing where some of it was set aside, or put back."""
    if any(places.quarantine.glob("*.json")) or any((places.log / RETRY_LOG).glob("*.segment")):
        return []
    return [
        rows
        for log, position in ledger.positions.items()
        if (places.log / log).is_dir()
        for rows in expected_rows(places.log / log, identity=ledger.identity, loaded=position)
    ]


def _ahead(log: str, position: LogPosition, end: LogPosition) -> Problem:
    return Problem(
        "ledger",
        f"it has noted the log {log} as stored up to byte {position.offset} of segment "
        f"{position.segment}, and the log ends at byte {end.offset} of segment {end.segment}: "
        "ledger and log are not of the same moment",
    )


def _check_clickhouse(
    address: ClickHouseAddress, places: DataPlaces, ledger: _Ledger | None, problems: list[Problem]
) -> StoreReport:
    """Check that ClickHouse has what the logs still have of the stored rows."""
    report = check_clickhouse(
        address,
        identity="" if ledger is None else ledger.identity,
        expected=[] if ledger is None else _expected_rows(places, ledger),
    )
    problems += [Problem("store", fault) for fault in report.faults]
    return report


def _check_store(
    places: DataPlaces, ledger: _Ledger | None, problems: list[Problem]
) -> StoreReport:
    """Check the store, where the ledger says that there should be one."""
    nothing = StoreReport((), 0, 0)
    if not places.store.exists():
        if ledger is not None and ledger.positions:
            problems.append(Problem("store", "it is missing, and the ledger says what is in it"))
        return nothing
    engine = ChdbEngine(places.store, log=get_logger())
    try:
        engine.open()
        report = check_store(
            engine,
            known=None if ledger is None else ledger.known_places(),
            expected=[] if ledger is None else _expected_rows(places, ledger),
        )
    except OperatorError as error:
        problems.append(Problem("store", str(error)))
        return nothing
    finally:
        engine.close()
    problems += [Problem("store", fault) for fault in report.faults]
    return report
