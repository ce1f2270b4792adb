"""The audit log beside websites and keys, in the same database."""

from headrace.adapters.directory.audit_lines import read_lines
from headrace.adapters.directory.connection import DirectoryDatabase
from headrace.adapters.directory.transactions import reading
from headrace.model.audit import AuditLine, AuditLineId, AuditReach


class SqlAuditLog:
    """The `AuditLog` port over the directory's database. Safe to use from several threads."""

    def __init__(self, database: DirectoryDatabase) -> None:
        self._database = database

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
