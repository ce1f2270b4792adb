"""The audit log as a caller with `manage:config` reads it."""

import re
from typing import Final

from headrace.administration.reach import find_reach
from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.formats.directory_objects import AuditObject, audit_object
from headrace.model.audit import DEFAULT_AUDIT_LINES, MAX_AUDIT_LINES, AuditLineId
from headrace.model.tenancy import ApiKey
from headrace.ports.directory import Directory

_NUMBER: Final = re.compile(r"[0-9]{1,9}")


class AuditReader:
    """Reads the lines within the reach of a caller; blocking."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def list(self, caller: ApiKey, *, limit: str | None, before: str | None) -> list[AuditObject]:
        """Return the newest lines before a line, newest first; the parameters are as received.

        Raises `InvalidQuery` for a limit that is no number from 1, `RejectedField` where `before`
        is unknown or out of reach, and `OperatorError` when the directory fails.
        """
        lines = self._directory.audit_log.lines(
            limit=_check_limit(limit),
            before=None if before is None else AuditLineId(before),
            reach=find_reach(caller, self._directory.organizations()).of_audit_log,
        )
        return [audit_object(line) for line in lines]


def _check_limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_AUDIT_LINES
    if not _NUMBER.fullmatch(text) or int(text) < 1:
        raise InvalidQuery(QueryErrorCode.INVALID_LIMIT, ": must be a whole number from 1")
    return min(int(text), MAX_AUDIT_LINES)
