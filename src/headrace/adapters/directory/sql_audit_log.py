"""The audit log beside websites and keys, in the same database."""

from collections.abc import Sequence

from msgspec import structs

from headrace.adapters.directory.audit_lines import forget_website, read_lines, record_change
from headrace.adapters.directory.connection import (
    DirectoryDatabase,
    translate_directory_errors,
)
from headrace.adapters.directory.statements import find_owner
from headrace.adapters.directory.tables import AUDIT_LOG
from headrace.adapters.directory.transactions import Author, reading, writing
from headrace.base.errors import OperatorError
from headrace.model.audit import AuditedChange, AuditLine, AuditLineId, AuditReach
from headrace.model.tenancy import WebsiteId


class SqlAuditLog:
    """The `AuditLog` port over the directory's database. Safe to use from several threads."""

    def __init__(self, database: DirectoryDatabase, author: Author) -> None:
        self._database = database
        self._author = author

    def lines(
        self,
        *,
        limit: int,
        before: AuditLineId | None = None,
        reach: AuditReach | None = None,
    ) -> tuple[AuditLine, ...]:
        """Return the newest lines, newest first; see `AuditLog.lines`."""
        with reading(self._database) as connection:
            return read_lines(connection, limit=limit, before=before, reach=reach)

    def record(self, changes: Sequence[AuditedChange]) -> None:
        """Write the lines of changes outside the directory; see `AuditLog.record`.

        The revision does not change, so workers do not read websites and keys again.
        """
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            for change in changes:
                owner = find_owner(transaction.connection, change.website_ids)
                record_change(transaction, structs.replace(change, organization_id=owner))

    def forget_website(self, website_id: WebsiteId) -> None:
        """Take the name of a website out of its lines; see `AuditLog.forget_website`."""
        with writing(self._database, self._author, bumps_revision=False) as transaction:
            forget_website(transaction.connection, website_id)
        try:
            with translate_directory_errors(self._database.label):
                self._database.scrub(AUDIT_LOG.name)
        except OSError as error:
            raise OperatorError(f"cannot clean {self._database.label}: {error.strerror}") from error
