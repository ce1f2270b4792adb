"""Checks the integrity of a data directory whose service is stopped."""

import contextlib
import threading
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from headrace.adapters.backup.check import (
    LedgerContents,
    check_logs,
    check_sqlite_files,
    expected_rows_of_logs,
    read_ledger,
)
from headrace.adapters.data_dir.lock import SERVE_COMMAND, DataDirLocked
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.adapters.store.chdb.check import check_store
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.rollup import Rollup
from headrace.adapters.store.clickhouse.check import check_clickhouse
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.reports import StoreReport
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, system_reason
from headrace.base.logs import get_logger
from headrace.base.settings import Settings, data_path
from headrace.model.audit import MAX_AUDIT_LINES, AuditAction, AuditLine
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs, DataRetention, RetentionPolicy
from headrace.model.integrity import IntegrityReport, Issue
from headrace.ports.audit import AuditLog
from headrace.wiring.data import locked_for_command, require_data
from headrace.wiring.directory_file import has_external_directory
from headrace.wiring.shared import has_valkey, open_configured_directory
from headrace.wiring.store_address import clickhouse_address, clickhouse_reader_address

_ENDS_OF_RETENTION: Final = (AuditAction.WEBSITE_UPDATE, AuditAction.WEBSITE_DELETE)


def verify(settings: Settings, *, repairs: bool = False) -> IntegrityReport:
    """Read everything in the data directory and in the store, and report what is damaged.

    With `repairs` the rollup of the embedded store is rebuilt first where it is broken. Raises
    `OperatorError` when the service runs, or the directory has no data.
    """
    paths = DataDirPaths(data_path(settings))
    require_data(settings)
    with _service_stopped(settings):
        files = list(check_sqlite_files(paths, external=_external_files(settings)))
        is_ledger_sound = all(issue.part != "ledger" for issue in files)
        ledger = read_ledger(paths) if is_ledger_sound else LedgerContents()
        logs = check_logs(paths, ledger)
        erasures = FileErasures(paths.erasures).issues()
        store = _check_store(settings, paths, ledger, repairs=repairs)
    return IntegrityReport(
        issues=(
            *files,
            *logs.issues,
            *(Issue("erasures", error) for error in erasures),
            *(Issue("store", error) for error in (*ledger.losses, *store.issues)),
        ),
        logs=logs.logs,
        records=logs.records,
        parts=store.parts,
        rows=store.rows,
        notes=tuple(Issue("store", note) for note in store.notes),
    )


def accept_losses(settings: Settings) -> None:
    """Take the store as it is, without the events that it is known to lack.

    Raises `OperatorError` when the service runs, or the directory has no data.
    """
    require_data(settings)
    with _service_stopped(settings):
        ledger = SqliteLedger.open(DataDirPaths(data_path(settings)).ledger)
        try:
            ledger.accept_losses()
        finally:
            ledger.close()


@contextlib.contextmanager
def _service_stopped(settings: Settings) -> Generator[None]:
    try:
        with locked_for_command(settings, "headrace verify"):
            yield
    except DataDirLocked as locked:
        if locked.owner.command != SERVE_COMMAND:
            raise
        raise OperatorError(
            f"cannot verify {settings.data_dir}: the service runs; stop it, or verify a restored "
            "backup"
        ) from locked


def _external_files(settings: Settings) -> frozenset[Path]:
    """Return the files that are missing because a server stores their content."""
    paths = DataDirPaths(data_path(settings))
    directory = {paths.directory} if has_external_directory(settings) else set[Path]()
    repeats = {paths.idempotency} if has_valkey(settings) else set[Path]()
    return frozenset(directory | repeats)


def _check_store(
    settings: Settings, paths: DataDirPaths, ledger: LedgerContents, *, repairs: bool
) -> StoreReport:
    address = clickhouse_reader_address(settings) or clickhouse_address(settings)
    if address is not None:
        expected = expected_rows_of_logs(paths, ledger, _cutoffs(settings))
        return check_clickhouse(address, identity=ledger.identity, expected=expected)
    if paths.store.exists():
        return _check_chdb(paths, ledger, _cutoffs(settings), repairs=repairs)
    missing = (
        ("it is missing, but the ledger lists batches that it contains",)
        if ledger.stored_offsets
        else ()
    )
    return StoreReport(missing, parts=0, rows=0)


def _cutoffs(settings: Settings) -> Mapping[str, Cutoffs]:
    """Return the latest cutoffs that websites have had; none where the directory cannot be read.

    Rows before them may have been pruned, also where a website keeps rows longer since, or was
    deleted. A default of the service that has become longer leaves no trace.
    """
    clock = SystemClock()
    policy = RetentionPolicy(settings.retain_days)
    cutoffs: dict[str, Cutoffs] = {}
    with contextlib.suppress(OperatorError):
        directory = open_configured_directory(settings, clock)
        try:
            for website in directory.websites():
                cutoffs[website.id] = policy.cutoffs(website.retention, clock.now_ms())
            for line in _ended_retentions(directory.audit_log):
                past = policy.cutoffs(_retention_before(line), line.time_ms)
                website_id = str(line.change.object_id)
                cutoffs[website_id] = cutoffs.get(website_id, NO_CUTOFFS).latest(past)
        finally:
            directory.close()
    return cutoffs


def _ended_retentions(audit_log: AuditLog) -> Iterator[AuditLine]:
    """Return the lines of changes and deletions of websites."""
    lines = audit_log.lines(limit=MAX_AUDIT_LINES)
    while lines:
        yield from (line for line in lines if line.change.action in _ENDS_OF_RETENTION)
        lines = audit_log.lines(limit=MAX_AUDIT_LINES, before=lines[-1].id)


def _retention_before(line: AuditLine) -> DataRetention:
    return msgspec.convert((line.change.before or {}).get("retention", {}), DataRetention)


def _check_chdb(
    paths: DataDirPaths,
    ledger: LedgerContents,
    cutoffs: Mapping[str, Cutoffs],
    *,
    repairs: bool,
) -> StoreReport:
    chdb = ChdbInstance(paths.store, log=get_logger())
    try:
        chdb.open()
        if repairs:
            Rollup(chdb).rebuild(threading.Event(), checks_bytes=True)
        return check_store(
            chdb,
            known=ledger.loaded_offsets(),
            expected=expected_rows_of_logs(paths, ledger, cutoffs),
            identities=ledger.table_identities,
        )
    except (OperatorError, ClickHouseError, OSError) as error:
        return StoreReport((system_reason(error),), parts=0, rows=0)
    finally:
        chdb.close()
