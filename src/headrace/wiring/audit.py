"""Writes the lines of changes outside the directory, where no directory is open."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.settings import Settings
from headrace.formats.audited_changes import erasure_change
from headrace.model.audit import AuditedChange
from headrace.model.tenancy import WebsiteId
from headrace.ports.audit import AuditLog
from headrace.ports.rows.erasure import Erasure
from headrace.wiring.shared import open_configured_directory


def record_changes(settings: Settings, by: str, changes: Sequence[AuditedChange]) -> None:
    """Write the lines of changes by somebody; see `AuditLog.record`. Raises `OperatorError`."""
    with _opened_audit_log(settings, by) as audit_log:
        audit_log.record(changes)


class EngineErasureAudit:
    """The `ErasureAudit` of the engine process, which erases rarely: it opens the directory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def record(self, erasure: Erasure) -> None:
        """Write the line of an erasure; see `ErasureAudit.record`."""
        with _translated():
            record_changes(self._settings, erasure.by, [erasure_change(erasure)])

    def forget_website(self, website_id: WebsiteId) -> None:
        """Take the name of a website out of its lines; see `ErasureAudit.forget_website`."""
        with _translated(), _opened_audit_log(self._settings, "headrace") as audit_log:
            audit_log.forget_website(website_id)


@contextmanager
def _opened_audit_log(settings: Settings, by: str) -> Generator[AuditLog]:
    directory = open_configured_directory(settings, SystemClock())
    try:
        yield directory.acting_as(by).audit_log
    finally:
        directory.close()


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except OperatorError as error:
        raise StoreUnavailable(str(error)) from error
