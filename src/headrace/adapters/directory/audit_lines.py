"""The lines of the audit log: written in the transaction of the change, and read newest first."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, func, insert, select, update

from headrace.adapters.directory.tables import AUDIT_LOG
from headrace.adapters.directory.tokens import new_id
from headrace.adapters.directory.transactions import WriteTransaction
from headrace.base.errors import RejectedField
from headrace.formats.directory_objects import (
    JsonObject,
    code_object,
    key_object,
    organization_object,
    website_object,
)
from headrace.model.audit import (
    AuditAction,
    AuditedChange,
    AuditLine,
    AuditLineId,
    AuditReach,
)
from headrace.model.tenancy import ApiKey, Organization, OrganizationId, Website, WebsiteId

_PAGE: Final = 1_000
"""Lines that are read at once for a key that is limited to websites."""

_ORGANIZATION_ACTIONS: Final = (
    AuditAction.ORGANIZATION_CREATE,
    AuditAction.ORGANIZATION_UPDATE,
    AuditAction.ORGANIZATION_DELETE,
)
_WEBSITE_ACTIONS: Final = (
    AuditAction.WEBSITE_CREATE,
    AuditAction.WEBSITE_UPDATE,
    AuditAction.WEBSITE_DELETE,
)
_NAMING_FIELDS: Final = ("name", "domain", "origins")
_KEY_ACTIONS: Final = (AuditAction.KEY_CREATE, AuditAction.KEY_REVOKE, AuditAction.KEY_DELETE)


def record_change(transaction: WriteTransaction, change: AuditedChange) -> None:
    """Write the line of a change."""
    author, connection = transaction.author, transaction.connection
    # Writes are serialized, so that no other transaction takes the same number.
    last = connection.execute(select(func.max(AUDIT_LOG.c.sequence))).scalar_one()
    connection.execute(
        insert(AUDIT_LOG).values(
            sequence=(last or 0) + 1,
            id=new_id("aud", author.randomness),
            time_ms=author.clock.now_ms(),
            author=author.name,
            action=change.action.value,
            object_id=change.object_id,
            object_before=change.before,
            object_after=change.after,
            organization_id=change.organization_id,
            website_ids=list(change.website_ids),
        )
    )


def record_organization(
    transaction: WriteTransaction, before: Organization | None, after: Organization | None
) -> None:
    """Write the line of an organization that was created, changed or deleted."""
    _record(
        transaction,
        _ORGANIZATION_ACTIONS,
        None if before is None else organization_object(before),
        None if after is None else organization_object(after),
    )


def record_website(
    transaction: WriteTransaction, before: Website | None, after: Website | None
) -> None:
    """Write the line of a website that was created, changed or deleted."""
    _record(
        transaction,
        _WEBSITE_ACTIONS,
        None if before is None else website_object(before),
        None if after is None else website_object(after),
        website_ids=tuple({one.id for one in (before, after) if one is not None}),
    )


def record_key(transaction: WriteTransaction, before: ApiKey | None, after: ApiKey | None) -> None:
    """Write the line of a key that was created, revoked or deleted."""
    key = before if after is None else after
    _record(
        transaction,
        _KEY_ACTIONS,
        None if before is None else key_object(before),
        None if after is None else key_object(after),
        website_ids=() if key is None else key.website_ids,
    )


def record_code(transaction: WriteTransaction, code: ApiKey) -> None:
    """Write the line of a sign-in code that was created, with the rights of its session."""
    shown = code_object(code)
    _record_rights(transaction, AuditAction.CODE_CREATE, None, shown, code)


def record_used_code(transaction: WriteTransaction, session: ApiKey) -> None:
    """Write the line of the session that was begun with a sign-in code."""
    shown = key_object(session)
    _record_rights(transaction, AuditAction.CODE_USE, session.id, shown, session)


def _record_rights(
    transaction: WriteTransaction,
    action: AuditAction,
    object_id: str | None,
    shown: JsonObject,
    key: ApiKey,
) -> None:
    change = AuditedChange(
        action=action,
        object_id=object_id,
        after=shown,
        organization_id=key.organization_id,
        website_ids=key.website_ids,
    )
    record_change(transaction, change)


def _record(
    transaction: WriteTransaction,
    actions: tuple[AuditAction, AuditAction, AuditAction],
    before: JsonObject | None,
    after: JsonObject | None,
    *,
    website_ids: tuple[WebsiteId, ...] = (),
) -> None:
    """Write the line of an object that was created, changed or deleted; none if it is the same.

    Only operators see the line of what was moved to another organization.
    """
    if before == after:
        return
    created, changed, deleted = actions
    shown = [one for one in (before, after) if one is not None]
    owners = {one.get("organization") for one in shown}
    change = AuditedChange(
        action=created if before is None else deleted if after is None else changed,
        object_id=shown[0]["id"],
        before=before,
        after=after,
        organization_id=owners.pop() if len(owners) == 1 else None,
        website_ids=website_ids,
    )
    record_change(transaction, change)


def forget_website(connection: Connection, website_id: WebsiteId) -> None:
    """Take name, domain and origins of a website out of the lines about it."""
    own = AUDIT_LOG.c.object_id == website_id
    about_it = select(AUDIT_LOG).where(
        own, AUDIT_LOG.c.action.in_([action.value for action in _WEBSITE_ACTIONS])
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


def read_lines(
    connection: Connection, *, limit: int, before: AuditLineId | None, reach: AuditReach | None
) -> tuple[AuditLine, ...]:
    """Return lines, newest first; see `AuditLog.lines`."""
    organization_id = None if reach is None else reach.organization_id
    below = None if before is None else _find_sequence(connection, before, reach)
    # The database knows the organizations of lines, but not which lists of websites are in reach.
    page_size = limit if reach is None or not reach.website_ids else _PAGE
    found: list[AuditLine] = []
    while True:
        page = _read_page(connection, below, organization_id, page_size)
        lines = (_read_line(row) for row in page)
        found.extend(line for line in lines if reach is None or reach.has(line))
        if len(found) >= limit or len(page) < page_size:
            return tuple(found[:limit])
        below = page[-1].sequence


def _read_page(
    connection: Connection,
    below: int | None,
    organization_id: OrganizationId | None,
    page_size: int,
) -> Sequence[Row[Any]]:
    page = select(AUDIT_LOG).order_by(AUDIT_LOG.c.sequence.desc()).limit(page_size)
    if below is not None:
        page = page.where(AUDIT_LOG.c.sequence < below)
    if organization_id is not None:
        page = page.where(AUDIT_LOG.c.organization_id == organization_id)
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
