"""The contract of sessions and sign-in codes, for SQLite and PostgreSQL."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.base.clock import FixedClock
from headrace.base.errors import OperatorError
from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    KeyKind,
    OrganizationId,
    Scope,
    WebsiteId,
    hash_secret,
)
from headrace.ports.sessions import CODE_MS, SESSION_MS

NOON = 1_700_000_000_000
READ = frozenset({Scope.READ_DATA})


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


def begun(result: tuple[ApiKey, str] | None) -> tuple[ApiKey, str]:
    assert result is not None
    return result


def test_a_code_begins_one_session_with_its_rights(directory: SqlDirectory) -> None:
    blog = directory.create_website(name="Blog")
    directory.create_website(name="Shop")
    (default,) = directory.organizations()
    code = directory.sessions.create_code(scopes=READ, website_ids=(blog.id,))
    session, secret = begun(directory.sessions.begin_with_code(code))
    assert session == ApiKey(
        id=session.id,
        prefix=secret[:9],
        secret_hash=hash_secret(secret),
        organization_id=default.id,
        scopes=READ,
        created_ms=NOON,
        website_ids=(blog.id,),
        expires_ms=NOON + SESSION_MS,
        kind=KeyKind.SESSION,
    )
    assert session.id.startswith("ses_")
    assert directory.sessions.begin_with_code(code) is None
    assert directory.keys() == (session,)
    tenancy = directory.tenancy()
    assert (tenancy.keys, tenancy.sessions) == ({}, {hash_secret(secret): session})


def test_a_code_is_valid_for_fifteen_minutes(directory: SqlDirectory, clock: FixedClock) -> None:
    late, on_time = (directory.sessions.create_code(scopes=READ) for _ in range(2))
    clock.advance(CODE_MS - 1)
    assert directory.sessions.begin_with_code(on_time) is not None
    clock.advance(1)
    assert directory.sessions.begin_with_code(late) is None


def test_an_unknown_code_begins_nothing_and_changes_nothing(directory: SqlDirectory) -> None:
    directory.sessions.create_code(scopes=READ)
    before = directory.revision()
    assert directory.sessions.begin_with_code("unknown") is None
    assert directory.sessions.begin_with_key("hr_unknown") is None
    assert directory.revision() == before


def test_a_session_of_a_key_has_its_rights_and_ends_with_it(
    directory: SqlDirectory, clock: FixedClock
) -> None:
    website = directory.create_website(name="Blog")
    key, key_secret = directory.create_key(
        scopes=READ, website_ids=(website.id,), expires_ms=NOON + 1000
    )
    session, secret = begun(directory.sessions.begin_with_key(key_secret))
    assert (session.kind, session.parent_id) == (KeyKind.SESSION, key.id)
    assert (session.scopes, session.website_ids) == (READ, (website.id,))
    assert session.expires_ms == NOON + 1000
    assert directory.sessions.begin_with_key(secret) is None  # a session begins no other one
    clock.advance(1000)
    assert directory.sessions.begin_with_key(key_secret) is None


def test_revoking_a_key_revokes_its_sessions_alone(directory: SqlDirectory) -> None:
    key, key_secret = directory.create_key(scopes=READ)
    _, other_secret = directory.create_key(scopes=READ)
    begun(directory.sessions.begin_with_key(key_secret))
    other, _ = begun(directory.sessions.begin_with_key(other_secret))
    directory.revoke_key(key.id)
    assert tuple(directory.tenancy().sessions.values()) == (other,)


@pytest.mark.parametrize("end", ["revoke_key", "delete_organization"])
def test_a_key_that_ends_while_its_session_begins_leaves_none(
    location: str | Path, clock: FixedClock, end: str
) -> None:
    actions: list[Callable[[], None]] = []

    def random_bytes(count: int) -> bytes:
        while actions:
            actions.pop()()
        return os.urandom(count)

    directory = open_directory(location, clock, randomness=random_bytes)
    key, secret = directory.create_key(scopes=READ)
    ends = {"revoke_key": key.id, "delete_organization": key.organization_id}
    actions.append(lambda: getattr(directory, end)(ends[end]))
    begun_session = directory.sessions.begin_with_key(secret)
    sessions = directory.tenancy().sessions
    directory.close()
    assert (begun_session, sessions) == (None, {})


def test_a_session_ends_once_and_an_unknown_one_does_nothing(
    directory: SqlDirectory, clock: FixedClock
) -> None:
    key, secret = directory.create_key(scopes=READ)
    session, _ = begun(directory.sessions.begin_with_key(secret))
    directory.sessions.end(session.id)
    clock.advance(1)
    directory.sessions.end(session.id)
    directory.sessions.end(KeyId("ses_unknown"))
    directory.sessions.end(key.id)  # a key is no session
    listed = directory.keys()
    assert [each.revoked_ms for each in listed] == [None, NOON]


def test_sessions_that_are_over_are_deleted_with_the_next_sign_in(
    directory: SqlDirectory, clock: FixedClock
) -> None:
    begun(directory.sessions.begin_with_code(directory.sessions.create_code(scopes=READ)))
    clock.advance(SESSION_MS)
    second, _ = begun(
        directory.sessions.begin_with_code(directory.sessions.create_code(scopes=READ))
    )
    assert directory.keys() == (second,)


def test_sessions_and_codes_go_with_their_organization(directory: SqlDirectory) -> None:
    acme = directory.create_organization("acme")
    used, unused = (
        directory.sessions.create_code(scopes=READ, organization_id=acme.id) for _ in range(2)
    )
    begun(directory.sessions.begin_with_code(used))
    directory.delete_organization(acme.id)
    assert directory.keys() == ()
    assert directory.sessions.begin_with_code(unused) is None


def test_a_code_for_what_does_not_exist_is_rejected(directory: SqlDirectory) -> None:
    acme = directory.create_organization("acme")
    website = directory.create_website(name="Blog")
    for scopes, organization, websites in (
        (frozenset[Scope](), None, ()),
        (READ, OrganizationId("org_nobody"), ()),
        (READ, None, (WebsiteId("web_none"),)),
        (READ, acme.id, (website.id,)),
    ):
        with pytest.raises(OperatorError):
            directory.sessions.create_code(
                scopes=scopes, organization_id=organization, website_ids=websites
            )
