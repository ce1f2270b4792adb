"""The audit log: an append-only record of who changed what."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from headrace.model.audit import AuditedChange, AuditLine, AuditLineId, AuditReach
from headrace.model.tenancy import WebsiteId

RecordChanges: TypeAlias = Callable[[str, Sequence[AuditedChange]], None]
"""Writes the lines of changes by somebody; see `AuditLog.record`."""


class AuditLog(Protocol):
    """The audit log of a directory. Blocking. Raises `OperatorError` when the directory fails."""

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

    def record(self, changes: Sequence[AuditedChange]) -> None:
        """Write the lines of changes outside the directory, by the author of the directory.

        Call it when a change is about to begin and nothing but a failure can prevent it: no change
        is without its line then. The organization of a line is that of its website.
        """
        ...

    def forget_website(self, website_id: WebsiteId) -> None:
        """Take name, domain and origins of a website out of its lines, and out of free space.

        Safe to call twice, and with an unknown id.
        """
        ...
