"""The lines of the audit log, written in the transaction of the change."""

from typing import Final

import msgspec
from msgspec import Struct, structs
from sqlalchemy import func, insert, select

from headrace.adapters.directory.rows import read_key
from headrace.adapters.directory.tables import API_KEYS, AUDIT_LOG
from headrace.adapters.directory.tokens import new_id
from headrace.adapters.directory.transactions import WriteTransaction
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
    session_of,
)
from headrace.model.tenancy import ApiKey, KeyId, Organization, Website, WebsiteId

_ORGANIZATION_ACTIONS: Final = (
    AuditAction.ORGANIZATION_CREATE,
    AuditAction.ORGANIZATION_UPDATE,
    AuditAction.ORGANIZATION_DELETE,
)
WEBSITE_ACTIONS: Final = (
    AuditAction.WEBSITE_CREATE,
    AuditAction.WEBSITE_UPDATE,
    AuditAction.WEBSITE_DELETE,
)
_KEY_ACTIONS: Final = (AuditAction.KEY_CREATE, AuditAction.KEY_REVOKE, AuditAction.KEY_DELETE)


def record_change(transaction: WriteTransaction, change: AuditedChange) -> None:
    """Write the line of a change; before the first of a session, one that tells its key."""
    session_id = session_of(transaction.author.name)
    if session_id is not None:
        _record_session(transaction, session_id)
    _insert_line(transaction, change)


def _record_session(transaction: WriteTransaction, session_id: KeyId) -> None:
    """Write the line of a session that was begun with a key, unless there is one.

    It is deleted when it ends, and then nothing else tells whose changes these were.
    """
    connection = transaction.connection
    has_line = select(AUDIT_LOG.c.id).where(AUDIT_LOG.c.object_id == session_id).limit(1)
    row = connection.execute(select(API_KEYS).where(API_KEYS.c.id == session_id)).first()
    if row is None or row.parent_id is None or connection.scalar(has_line) is not None:
        return
    session = read_key(row)
    author = structs.replace(transaction.author, name=row.parent_id)
    change = AuditedChange(
        action=AuditAction.SESSION_CREATE,
        object_id=session.id,
        after=_shown(key_object(session)),
        organization_id=session.organization_id,
        website_ids=session.website_ids,
    )
    _insert_line(transaction._replace(author=author), change)


def _insert_line(transaction: WriteTransaction, change: AuditedChange) -> None:
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
            website_id=next(iter(change.website_ids), None),
        )
    )


def record_organization(
    transaction: WriteTransaction, before: Organization | None, after: Organization | None
) -> None:
    """Write the line of an organization that was created, changed or deleted."""
    _record(
        transaction,
        _ORGANIZATION_ACTIONS,
        None if before is None else _shown(organization_object(before)),
        None if after is None else _shown(organization_object(after)),
    )


def record_website(
    transaction: WriteTransaction, before: Website | None, after: Website | None
) -> None:
    """Write the line of a website that was created, changed or deleted."""
    _record(
        transaction,
        WEBSITE_ACTIONS,
        None if before is None else _shown(website_object(before)),
        None if after is None else _shown(website_object(after)),
        website_ids=tuple({one.id for one in (before, after) if one is not None}),
    )


def record_key(transaction: WriteTransaction, before: ApiKey | None, after: ApiKey | None) -> None:
    """Write the line of a key that was created, revoked or deleted."""
    key = before if after is None else after
    _record(
        transaction,
        _KEY_ACTIONS,
        None if before is None else _shown(key_object(before)),
        None if after is None else _shown(key_object(after)),
        website_ids=() if key is None else key.website_ids,
    )


def record_code(transaction: WriteTransaction, code: ApiKey) -> None:
    """Write the line of a sign-in code that was created, with the rights of its session."""
    shown = _shown(code_object(code))
    _record_rights(transaction, AuditAction.CODE_CREATE, None, shown, code)


def record_used_code(transaction: WriteTransaction, session: ApiKey) -> None:
    """Write the line of the session that was begun with a sign-in code."""
    shown = _shown(key_object(session))
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


def _shown(one: Struct) -> JsonObject:
    """Return an object as a line keeps it."""
    shown: JsonObject = msgspec.to_builtins(one)
    return shown
