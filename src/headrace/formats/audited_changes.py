"""The lines of changes outside the directory: of rows, quarantined entries and data directories."""

from collections.abc import Sequence

from headrace.base.clock import utc_day
from headrace.base.datetime_text import format_iso
from headrace.model.audit import AuditAction, AuditedChange
from headrace.model.export import END_OF_TIME_MS, FIRST_TIME_MS, ExportRequest
from headrace.model.imports import ImportRequest
from headrace.model.storage import TABLE_OF_KIND
from headrace.model.stored_rows import ExpiredRows
from headrace.model.tenancy import WebsiteId
from headrace.ports.quarantine import StoredEntry
from headrace.ports.rows.erasure import Erasure
from headrace.ports.rows.shared_erasures import Machine


def erasure_change(erasure: Erasure) -> AuditedChange:
    """Return the change of an erasure. It does not contain the identifier."""
    return AuditedChange(
        action=AuditAction.ERASURE_CREATE,
        object_id=erasure.id,
        after={
            "website": erasure.website_id,
            "selector": erasure.kind.value,
            "rows": dict(erasure.rows),
        },
        website_ids=(erasure.website_id,),
    )


def forgotten_machine_change(machine: Machine) -> AuditedChange:
    """Return the change of noting that a machine is gone for good, as it was before."""
    return AuditedChange(
        action=AuditAction.MACHINE_FORGET,
        object_id=machine.id,
        before={
            "id": machine.id,
            "firstSeen": format_iso(machine.first_seen_ms),
            "lastSeen": format_iso(machine.seen_ms),
        },
    )


def prune_change(expired: Sequence[ExpiredRows]) -> AuditedChange:
    """Return the change of deleting rows that have expired, of any websites."""
    return AuditedChange(
        action=AuditAction.ROWS_PRUNE,
        after={"rows": sum(one.rows for one in expired)},
    )


def import_change(request: ImportRequest, files: int) -> AuditedChange:
    """Return the change of an import of a number of files."""
    return AuditedChange(
        action=AuditAction.ROWS_IMPORT,
        object_id=request.website_id,
        after={
            "table": TABLE_OF_KIND[request.event_kind].name,
            "format": request.format.value,
            "files": files,
        },
        website_ids=(request.website_id,),
    )


def export_change(request: ExportRequest) -> AuditedChange:
    """Return the change that an export is: rows leave the service. Days are UTC, both included."""
    has_start, has_end = request.start_ms > FIRST_TIME_MS, request.end_ms < END_OF_TIME_MS
    return AuditedChange(
        action=AuditAction.ROWS_EXPORT,
        object_id=request.website_id,
        after={
            "table": request.table,
            "format": request.format.value,
            "from": utc_day(request.start_ms) if has_start else None,
            "to": utc_day(request.end_ms - 1) if has_end else None,
        },
        website_ids=(request.website_id,),
    )


def restore_change(made: str, erasures: int) -> AuditedChange:
    """Return the change of restoring a backup of a time, and the erasures applied to it."""
    return AuditedChange(
        action=AuditAction.BACKUP_RESTORE, after={"made": made, "erasures": erasures}
    )


def retry_change(stored: StoredEntry) -> AuditedChange:
    """Return the change of requeueing an entry of the quarantine. It does not contain the item."""
    website = stored.website_id
    return AuditedChange(
        action=AuditAction.QUARANTINE_RETRY,
        object_id=stored.id,
        after={"website": website},
        website_ids=() if website is None else (WebsiteId(website),),
    )
