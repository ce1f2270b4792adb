"""Checks that the files of a data directory are consistent, while no service runs.

The store is checked by its own adapter, against the rows that the logs say must be in it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from headrace.adapters.backup.expected_rows import expected_rows
from headrace.adapters.backup.lost_files import has_loaded, has_logged, lost_state
from headrace.adapters.data_dir.paths import (
    ENTRY_SUFFIX,
    RETRY_LOG,
    SEGMENT_SUFFIX,
    DataDirPaths,
    log_folders,
)
from headrace.adapters.event_log.segment_check import LogReport, check_log
from headrace.adapters.sqlite.copies import integrity_errors
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.dialect.reports import ExpectedRows, LoadedOffsets
from headrace.formats.row_ids import parse_log_offset
from headrace.model.data_retention import Cutoffs
from headrace.model.integrity import Issue
from headrace.ports.event_log import LOG_START, LogOffset
from headrace.ports.ledger import LogRange, PendingBatch


class LedgerContents(Struct, frozen=True):
    """The ledger's stored offset of each log, by the log's name, its pending batch, and its store.

    Empty, and with an empty identity, for a ledger that is missing or damaged.
    """

    identity: str = ""
    stored_offsets: Mapping[str, LogOffset] = {}
    pending_batch: PendingBatch | None = None
    table_identities: Mapping[str, str] = {}
    losses: Sequence[str] = ()
    imported_offsets: Mapping[int, bytes] = {}

    def loaded_offsets(self) -> LoadedOffsets | None:
        """Return the offsets up to which rows may be in the store; None where unknown."""
        if not self.identity:
            return None
        imported = {
            number: parse_log_offset(offset) for number, offset in self.imported_offsets.items()
        }
        return LoadedOffsets(self.identity, self.max_stored_offsets(), imported)

    def max_stored_offsets(self) -> Mapping[str, LogOffset]:
        """Return, by the log's name, the offset up to which records may be stored."""
        pending: Mapping[str, LogRange] = (
            {} if self.pending_batch is None else self.pending_batch.ranges
        )
        return {
            log: max(
                self.stored_offsets.get(log, LOG_START),
                pending[log].end if log in pending else LOG_START,
            )
            for log in {*self.stored_offsets, *pending}
        }


class LogsReport(Struct, frozen=True):
    """The issues of all logs, and the numbers of logs and records read."""

    issues: tuple[Issue, ...]
    logs: int
    records: int


def check_sqlite_files(paths: DataDirPaths, *, external: Collection[Path]) -> Iterator[Issue]:
    """Check that the SQLite files exist and are intact.

    A directory with logs must have all of them but `external`, which are on other servers. During
    the first start they may be missing: the ledger until something is loaded, the others until
    something is logged.
    """
    is_loaded = has_loaded(paths)
    is_logged = has_logged(paths)
    for part, path, is_required, loss in (
        ("directory", paths.directory, is_logged, "websites and keys are lost"),
        ("ledger", paths.ledger, is_loaded, "which records of the logs are stored is unknown"),
        ("repeats", paths.idempotency, is_logged, "idempotency keys of the last day are lost"),
    ):
        if (state := lost_state(path)) is not None:
            if is_required and path not in external:
                yield Issue(part, f"{path.name} is {state}: {loss}")
            continue
        for error in integrity_errors(path):
            yield Issue(part, f"{path.name} {error}")


def read_ledger(paths: DataDirPaths) -> LedgerContents:
    """Read a ledger that is intact or missing. Raises `OperatorError`, `StoreUnavailable`."""
    if not paths.ledger.exists():
        return LedgerContents()
    ledger = SqliteLedger.open(paths.ledger)
    try:
        return LedgerContents(
            ledger.identity(),
            ledger.stored_offsets(),
            ledger.pending_batch(),
            ledger.table_identities(),
            ledger.losses(),
            ledger.imported_offsets(),
        )
    finally:
        ledger.close()


def check_logs(paths: DataDirPaths, ledger: LedgerContents) -> LogsReport:
    """Check every log, and compare its end with the ledger's offset. Raises `OSError`."""
    reports = {
        path.name: check_log(path, loaded=ledger.stored_offsets.get(path.name))
        for path in log_folders(paths.log)
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


def expected_rows_of_logs(
    paths: DataDirPaths, ledger: LedgerContents, cutoffs: Mapping[str, Cutoffs]
) -> list[ExpectedRows]:
    """Return the rows that must be in the store, from the loaded records still in the logs.

    Empty where items are or were quarantined: their rows need not be in the store. Rows before the
    cutoffs of their websites may have been pruned.
    """
    has_quarantined = any(paths.quarantine.glob(f"*{ENTRY_SUFFIX}"))
    has_requeued = any((paths.log / RETRY_LOG).glob(f"*{SEGMENT_SUFFIX}"))
    if has_quarantined or has_requeued:
        return []
    return [
        rows
        for log, position in ledger.stored_offsets.items()
        if (paths.log / log).is_dir()
        for rows in expected_rows(
            paths.log / log, identity=ledger.identity, loaded=position, cutoffs=cutoffs
        )
    ]


def _ledger_ahead_of_logs(
    ledger: LedgerContents, reports: Mapping[str, LogReport]
) -> Iterator[Issue]:
    for log, position in ledger.max_stored_offsets().items():
        if log not in reports:
            yield Issue("log", f"the log {log} is missing, and the ledger has an offset of it")
        elif position > (end := reports[log].end):
            yield Issue(
                "ledger",
                f"it has noted the log {log} as stored up to byte {position.offset} of segment "
                f"{position.segment}, and the log ends at byte {end.offset} of segment "
                f"{end.segment}: ledger and log are of different times",
            )
