"""The audit log beside websites and keys, in the same database."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import structs
from sqlalchemy import Connection, Row, select, update

from headrace.adapters.directory.audit_lines import WEBSITE_ACTIONS, record_change
from headrace.adapters.directory.connection import (
    DirectoryDatabase,
    translate_directory_errors,
)
from headrace.adapters.directory.statements import find_owner
from headrace.adapters.directory.tables import AUDIT_LOG
from headrace.adapters.directory.transactions import Author, reading, writing
from headrace.base.errors import OperatorError, RejectedField, system_reason
from headrace.formats.directory_objects import JsonObject
from headrace.model.audit import AuditAction, AuditedChange, AuditLine, AuditLineId, AuditReach
from headrace.model.tenancy import WebsiteId

_MIN_PAGE: Final = 100
"""Lines that are read at once, at least."""

_NAMING_FIELDS: Final = ("name", "domain", "origins")


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
            return _read_lines(connection, limit=limit, before=before, reach=reach)

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
            _forget_website(transaction.connection, website_id)
        try:
            with translate_directory_errors(self._database.label):
                self._database.scrub(AUDIT_LOG.name)
        except OSError as error:
            raise OperatorError(
                f"cannot clean {self._database.label}: {system_reason(error)}"
            ) from error


def _forget_website(connection: Connection, website_id: WebsiteId) -> None:
    """Take name, domain and origins of a website out of the lines about it."""
    own = AUDIT_LOG.c.object_id == website_id
    about_it = select(AUDIT_LOG).where(
        own, AUDIT_LOG.c.action.in_([action.value for action in WEBSITE_ACTIONS])
    )
    for row in connection.execute(about_it).all():
        connection.execute(
            update(AUDIT_LOG)
            .where(AUDIT_LOG.c.sequence == row.sequence)
            .values(
                object_before=_without_name(row.object_before),
                object_after=_without_name(row.object_after),
            )
        )


def _without_name(shown: JsonObject | None) -> JsonObject | None:
    return None if shown is None else {**shown, **dict.fromkeys(_NAMING_FIELDS)}


def _read_lines(
    connection: Connection, *, limit: int, before: AuditLineId | None, reach: AuditReach | None
) -> tuple[AuditLine, ...]:
    """Return lines, newest first; see `AuditLog.lines`."""
    below = None if before is None else _find_sequence(connection, before, reach)
    page_size = max(limit, _MIN_PAGE)
    found: list[AuditLine] = []
    while True:
        page = _read_page(connection, below, reach, page_size)
        lines = (_read_line(row) for row in page)
        found.extend(line for line in lines if reach is None or reach.has(line))
        if len(found) >= limit or len(page) < page_size:
            return tuple(found[:limit])
        below = page[-1].sequence


def _read_page(
    connection: Connection, below: int | None, reach: AuditReach | None, page_size: int
) -> Sequence[Row[Any]]:
    """Return rows; those in reach become lines. Some with several websites are out of reach."""
    page = select(AUDIT_LOG).order_by(AUDIT_LOG.c.sequence.desc()).limit(page_size)
    if below is not None:
        page = page.where(AUDIT_LOG.c.sequence < below)
    if reach is not None:
        page = page.where(AUDIT_LOG.c.organization_id == reach.organization_id)
        if reach.website_ids:
            page = page.where(AUDIT_LOG.c.website_id.in_(reach.website_ids))
    return connection.execute(page).all()


def _find_sequence(connection: Connection, line_id: AuditLineId, reach: AuditReach | None) -> int:
    # Ids are ASCII. Other text is not queried: a lone surrogate would be an error of the driver.
    row = (
        connection.execute(select(AUDIT_LOG).where(AUDIT_LOG.c.id == line_id)).first()
        if line_id.isascii() and line_id.isprintable()
        else None
    )
    if row is None or (reach is not None and not reach.has(_read_line(row))):
        raise RejectedField("before", f"no line of the audit log has the id {line_id!r}")
    sequence: int = row.sequence
    return sequence


def _read_line(row: Row[Any]) -> AuditLine:
    return AuditLine(
        id=AuditLineId(row.id),
        time_ms=row.time_ms,
        by=row.author,
        change=AuditedChange(
            action=AuditAction(row.action),
            object_id=row.object_id,
            before=row.object_before,
            after=row.object_after,
            organization_id=row.organization_id,
            website_ids=tuple(row.website_ids),
        ),
    )
