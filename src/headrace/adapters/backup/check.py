"""What must hold between the files of a data directory while no service runs.

The store itself is checked where its engine is; here is what the logs say must be in it.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from headrace.adapters.backup.expected_rows import expected_rows
from headrace.adapters.data_dir.paths import (
    ENTRY_SUFFIX,
    RETRY_LOG,
    SEGMENT_SUFFIX,
    DataDirPaths,
)
from headrace.adapters.event_log.segment_check import LogReport, check_log
from headrace.adapters.sqlite.copies import integrity_errors
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.dialect.reports import ExpectedRows, LoadedOffsets
from headrace.model.integrity import Issue
from headrace.ports.event_log import LOG_START, LogOffset
from headrace.ports.ledger import LogRange, PendingBatch


class LedgerContents(Struct, frozen=True):
    """What the ledger says, by the log's name: how far each is stored, and what is under way.

    One that is missing or damaged says nothing, and has no identity.
    """

    identity: str = ""
    stored_offsets: Mapping[str, LogOffset] = {}
    pending_batch: PendingBatch | None = None

    def loaded_offsets(self) -> LoadedOffsets | None:
        """Return what rows may be in the store; None where nobody knows."""
        return LoadedOffsets(self.identity, self.max_stored_offsets()) if self.identity else None

    def max_stored_offsets(self) -> Mapping[str, LogOffset]:
        """Return, by the log's name, the place up to which something may be stored."""
        begun: Mapping[str, LogRange] = (
            {} if self.pending_batch is None else self.pending_batch.ranges
        )
        return {
            log: max(
                self.stored_offsets.get(log, LOG_START),
                begun[log].end if log in begun else LOG_START,
            )
            for log in {*self.stored_offsets, *begun}
        }


class LogsReport(Struct, frozen=True):
    """What is wrong with all logs, and how much was read."""

    issues: tuple[Issue, ...]
    logs: int
    records: int


def check_sqlite_files(paths: DataDirPaths, *, external: Collection[Path]) -> Iterator[Issue]:
    """Check the SQLite files; a service that ever ran has all of them that are its own.

    `external` are those that it keeps on other servers instead.
    """
    for part, path, loss in (
        ("directory", paths.directory, "no website and no key is known"),
        ("ledger", paths.ledger, "nobody knows what of the logs is stored"),
        ("repeats", paths.idempotency, "idempotency keys are not remembered"),
    ):
        if not path.exists():
            if paths.log.exists() and path not in external:
                yield Issue(part, f"{path.name} is missing: {loss}")
            continue
        for error in integrity_errors(path):
            yield Issue(part, f"{path.name} is damaged: {error}")


def read_ledger(paths: DataDirPaths) -> LedgerContents:
    """Read a ledger that was found sound, or is missing."""
    if not paths.ledger.exists():
        return LedgerContents()
    ledger = SqliteLedger.open(paths.ledger)
    try:
        return LedgerContents(ledger.identity(), ledger.stored_offsets(), ledger.pending_batch())
    finally:
        ledger.close()


def check_logs(paths: DataDirPaths, ledger: LedgerContents) -> LogsReport:
    """Read every log, and compare where it ends with what the ledger says of it."""
    reports = {
        path.name: check_log(path, loaded=ledger.stored_offsets.get(path.name))
        for path in sorted(paths.log.glob("*/"))
    }
    log_issues = [
        Issue("log", f"the log {log}: {error}")
        for log, report in reports.items()
        for error in report.issues
    ]
    return LogsReport(
        issues=(*log_issues, *_ledger_ahead_of_logs(ledger, reports)),
        logs=len(reports),
        records=sum(report.records for report in reports.values()),
    )


def expected_rows_of_logs(paths: DataDirPaths, ledger: LedgerContents) -> list[ExpectedRows]:
    """List the stored rows that the logs still have, and so must be in the store.

    Nothing where some were set aside or put back: these need not be there.
    """
    has_quarantined = any(paths.quarantine.glob(f"*{ENTRY_SUFFIX}"))
    has_requeued = any((paths.log / RETRY_LOG).glob(f"*{SEGMENT_SUFFIX}"))
    if has_quarantined or has_requeued:
        return []
    return [
        rows
        for log, position in ledger.stored_offsets.items()
        if (paths.log / log).is_dir()
        for rows in expected_rows(paths.log / log, identity=ledger.identity, loaded=position)
    ]


def _ledger_ahead_of_logs(
    ledger: LedgerContents, reports: Mapping[str, LogReport]
) -> Iterator[Issue]:
    for log, position in ledger.max_stored_offsets().items():
        if log not in reports:
            yield Issue("log", f"the log {log} is missing, which the ledger knows of")
        elif position > (end := reports[log].end):
            yield Issue(
                "ledger",
                f"it has noted the log {log} as stored up to byte {position.offset} of segment "
                f"{position.segment}, and the log ends at byte {end.offset} of segment "
                f"{end.segment}: ledger and log are not of the same moment",
            )
