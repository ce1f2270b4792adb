"""The audit log: an append-only record of who changed what."""

from typing import Protocol

from headrace.model.audit import AuditLine, AuditLineId, AuditReach


class AuditLog(Protocol):
    """Reads the audit log. Blocking. Raises `OperatorError` when the directory fails."""

    def lines(
        self,
        *,
        limit: int,
        before: AuditLineId | None = None,
        reach: AuditReach | None = None,
    ) -> tuple[AuditLine, ...]:
        """Return the newest lines, newest first; with `before`, the newest before that line.

        Without a reach all lines are in it. Raises `RejectedField` where `before` is unknown or out
        of reach.
        """
        ...
