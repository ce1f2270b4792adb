"""What must hold between the files of a data directory while no service runs.

The store itself is checked where its engine is; here is what the logs say must be in it.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from headrace.adapters.backup.expected_rows import expected_rows
from headrace.adapters.data_dir.paths import DataPlaces
from headrace.adapters.event_log.segment_check import LogReport, check_log
from headrace.adapters.quarantine.requeuer import RETRY_LOG
from headrace.adapters.sqlite.copies import sqlite_faults
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.dialect.reports import ExpectedRows, KnownPlaces
from headrace.model.integrity import Problem
from headrace.ports.event_log import LOG_START, LogPosition
from headrace.ports.ledger import Intent, LogRange


class LedgerContents(Struct, frozen=True):
    """What the ledger says, by the log's name: how far each is stored, and what is under way.

    One that is missing or damaged says nothing, and has no identity.
    """

    identity: str = ""
    positions: Mapping[str, LogPosition] = {}
    intent: Intent | None = None

    def known_places(self) -> KnownPlaces | None:
        """Return what rows may be in the store; None where nobody knows."""
        return KnownPlaces(self.identity, self.stored_until()) if self.identity else None

    def stored_until(self) -> Mapping[str, LogPosition]:
        """Return, by the log's name, the place up to which something may be stored."""
        begun: Mapping[str, LogRange] = {} if self.intent is None else self.intent.ranges
        return {
            log: max(
                self.positions.get(log, LOG_START), begun[log].end if log in begun else LOG_START
            )
            for log in {*self.positions, *begun}
        }


class LogsReport(Struct, frozen=True):
    """What is wrong with all logs, and how much was read."""

    problems: tuple[Problem, ...]
    logs: int
    records: int


def check_files(places: DataPlaces, *, elsewhere: Collection[Path]) -> Iterator[Problem]:
    """Check the SQLite files; a service that ever ran has all of them that are its own.

    `elsewhere` are those that it keeps on other servers instead.
    """
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


def read_ledger(places: DataPlaces) -> LedgerContents:
    """Read a ledger that was found sound, or is missing."""
    if not places.ledger.exists():
        return LedgerContents()
    ledger = SqliteLedger.open(places.ledger)
    try:
        return LedgerContents(ledger.identity(), ledger.positions(), ledger.intent())
    finally:
        ledger.close()


def check_logs(places: DataPlaces, ledger: LedgerContents) -> LogsReport:
    """Read every log, and compare where it ends with what the ledger says of it."""
    reports = {
        path.name: check_log(path, loaded=ledger.positions.get(path.name))
        for path in sorted(places.log.glob("*/"))
    }
    faults = [
        Problem("log", f"the log {log}: {fault}")
        for log, report in reports.items()
        for fault in report.faults
    ]
    return LogsReport(
        problems=(*faults, *_ahead_of_logs(ledger, reports)),
        logs=len(reports),
        records=sum(report.records for report in reports.values()),
    )


def rows_of_logs(places: DataPlaces, ledger: LedgerContents) -> list[ExpectedRows]:
    """List the stored rows that the logs still have, and so must be in the store.

    Nothing where some were set aside or put back: these need not be there.
    """
    if any(places.quarantine.glob("*.json")) or any((places.log / RETRY_LOG).glob("*.segment")):
        return []
    return [
        rows
        for log, position in ledger.positions.items()
        if (places.log / log).is_dir()
        for rows in expected_rows(places.log / log, identity=ledger.identity, loaded=position)
    ]


def _ahead_of_logs(ledger: LedgerContents, reports: Mapping[str, LogReport]) -> Iterator[Problem]:
    for log, position in ledger.stored_until().items():
        if log not in reports:
            yield Problem("log", f"the log {log} is missing, which the ledger knows of")
        elif position > (end := reports[log].end):
            yield Problem(
                "ledger",
                f"it has noted the log {log} as stored up to byte {position.offset} of segment "
                f"{position.segment}, and the log ends at byte {end.offset} of segment "
                f"{end.segment}: ledger and log are not of the same moment",
            )
