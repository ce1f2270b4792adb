"""The contract of the audit log, for SQLite and PostgreSQL."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.adapters.directory.tokens import Randomness
from headrace.base.clock import FixedClock
from headrace.base.errors import OperatorError, RejectedField
from headrace.formats.directory_objects import (
    audit_object,
    key_object,
    organization_object,
    website_object,
)
from headrace.model.audit import AuditAction, AuditedChange, AuditLineId, AuditReach
from headrace.model.data_retention import RetentionChange
from headrace.model.tenancy import (
    ApiKey,
    KeyId,
    KeyKind,
    Organization,
    Scope,
    Website,
    WebsiteChange,
    WebsiteId,
)
from testing.examples import examples

NOON = 1_700_000_000_000
NOON_TEXT = "2023-11-14T22:13:20.000Z"
READ = frozenset({Scope.READ_DATA})
ANN = "key_ann"

Location = str | Path
Line = dict[str, Any]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def directory(location: Location, clock: FixedClock) -> Iterator[SqlDirectory]:
    """A directory whose author is Ann."""
    opened = open_directory(location, clock)
    yield opened.acting_as(ANN)
    opened.close()


def lines(directory: SqlDirectory) -> list[Line]:
    """Return the objects of all lines, oldest first."""
    return [as_json(audit_object(line)) for line in reversed(directory.audit_log.lines(limit=1000))]


def as_json(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def without_ids(found: list[Line]) -> list[Line]:
    """Return lines without their own ids, which are all different."""
    assert len({line["id"] for line in found}) == len(found)
    assert all(line["id"].startswith("aud_") for line in found)
    return [{name: value for name, value in line.items() if name != "id"} for line in found]


def line(action: str, object_id: str | None, before: Any, after: Any, *, by: str = ANN) -> Line:
    return {
        "time": NOON_TEXT,
        "by": by,
        "action": action,
        "object": object_id,
        "before": before,
        "after": after,
    }


def test_every_change_has_a_line_with_the_object_before_and_after(directory: SqlDirectory) -> None:
    acme = directory.create_organization("acme")
    renamed = directory.rename_organization(acme.id, "Acme")
    made = directory.create_website(name="Blog", organization_id=acme.id)
    changed = directory.update_website(
        made.id,
        WebsiteChange(name="News", public=True, retention=RetentionChange(days=30)),
    )
    key, secret = directory.create_key(scopes=READ, organization_id=acme.id)
    directory.revoke_key(key.id)
    directory.delete_website(made.id)
    acme_json = {"id": acme.id, "name": "acme", "created": NOON_TEXT}
    retention = {"days": None, "events": None, "errors": None, "performance": None}
    blog: Line = {
        "id": made.id,
        "name": "Blog",
        "domain": "",
        "organization": acme.id,
        "public": False,
        "origins": [],
        "retention": retention,
        "created": NOON_TEXT,
    }
    news = {**blog, "name": "News", "public": True, "retention": {**retention, "days": 30}}
    key_json = {
        "id": key.id,
        "prefix": secret[:9],
        "scopes": ["read:data"],
        "organization": acme.id,
        "websites": [],
        "home": None,
        "created": NOON_TEXT,
        "expires": None,
        "kind": "key",
        "revoked": None,
    }
    assert (renamed.name, changed.name) == ("Acme", "News")
    assert without_ids(lines(directory)) == [
        line("organization.create", acme.id, None, acme_json),
        line("organization.update", acme.id, acme_json, {**acme_json, "name": "Acme"}),
        line("website.create", made.id, None, blog),
        line("website.update", made.id, blog, news),
        line("key.create", key.id, None, key_json),
        line("key.revoke", key.id, key_json, {**key_json, "revoked": NOON_TEXT}),
        line("website.delete", made.id, news, None),
    ]


def test_deleting_an_organization_has_lines_for_its_keys_and_websites(
    directory: SqlDirectory,
) -> None:
    acme = directory.create_organization("acme")
    website = directory.create_website(name="Blog", organization_id=acme.id)
    key, _ = directory.create_key(scopes=READ, organization_id=acme.id)
    before = len(lines(directory))
    directory.delete_organization(acme.id)
    blog = as_json(website_object(website))
    assert without_ids(lines(directory)[before:]) == [
        line("organization.delete", acme.id, as_json(organization_object(acme)), None),
        line("key.delete", key.id, as_json(key_object(key)), None),
        line("website.update", website.id, blog, {**blog, "organization": None}),
    ]


def test_a_sign_in_code_has_a_line_when_it_is_made_and_when_it_is_used(
    directory: SqlDirectory,
) -> None:
    website = directory.create_website(name="Blog")
    before = len(lines(directory))
    code = directory.sessions.create_code(scopes=READ, website_ids=(website.id,))
    begun = directory.sessions.begin_with_code(code)
    assert directory.sessions.begin_with_code(code) is None
    assert begun is not None
    session, secret = begun
    rights = {
        "scopes": ["read:data"],
        "organization": website.organization_id,
        "websites": [website.id],
        "created": NOON_TEXT,
        "expires": "2023-11-14T22:28:20.000Z",
    }
    used = as_json(key_object(session))
    found = lines(directory)[before:]
    assert without_ids(found) == [
        line("code.create", None, None, rights),
        line("code.use", session.id, None, used, by=f"session {session.id}"),
    ]
    assert code not in json.dumps(found)
    assert secret not in json.dumps(found)


def test_the_first_change_of_a_session_names_the_key_that_began_it(
    directory: SqlDirectory,
) -> None:
    key, secret = directory.create_key(scopes=READ)
    begun = directory.sessions.begin_with_key(secret)
    assert begun is not None
    session, _ = begun
    before = len(lines(directory))
    on_the_page = directory.acting_as(f"session {session.id}")
    first = on_the_page.create_organization("first")
    second = on_the_page.create_organization("second")
    directory.acting_as("session ses_unknown").delete_organization(second.id)
    shown = [
        (line["by"], line["action"], line["object"], line["after"])
        for line in lines(directory)[before:]
    ]
    by = f"session {session.id}"
    assert shown == [
        (key.id, "session.create", session.id, as_json(key_object(session))),
        (by, "organization.create", first.id, as_json(organization_object(first))),
        (by, "organization.create", second.id, as_json(organization_object(second))),
        ("session ses_unknown", "organization.delete", second.id, None),
    ]


def test_sessions_of_a_key_and_their_ends_have_no_line_but_a_revoked_session_has(
    directory: SqlDirectory,
) -> None:
    _, secret = directory.create_key(scopes=READ)
    before = len(lines(directory))
    first, second = (directory.sessions.begin_with_key(secret) for _ in range(2))
    assert first is not None
    assert second is not None
    directory.sessions.end(first[0].id)
    assert lines(directory)[before:] == []
    directory.revoke_key(second[0].id)
    shown = as_json(key_object(second[0]))
    assert without_ids(lines(directory)[before:]) == [
        line("key.revoke", second[0].id, shown, {**shown, "revoked": NOON_TEXT})
    ]


def test_what_changes_nothing_and_what_is_refused_has_no_line(directory: SqlDirectory) -> None:
    website = directory.create_website(name="Blog")
    key, _ = directory.create_key(scopes=READ)
    directory.revoke_key(key.id)
    before = lines(directory)
    directory.update_website(website.id, WebsiteChange(name="Blog"))
    directory.rename_organization(key.organization_id, "default")
    directory.revoke_key(key.id)
    refused: list[Callable[[], object]] = [
        lambda: directory.create_organization(" "),
        lambda: directory.create_key(scopes=frozenset()),
        lambda: directory.update_website(website.id, WebsiteChange(origins=("nowhere",))),
        lambda: directory.delete_website(WebsiteId("web_x")),
        lambda: directory.revoke_key(KeyId("key_x")),
    ]
    for call in refused:
        with pytest.raises(OperatorError):
            call()
    assert lines(directory) == before


def test_the_author_is_the_one_for_whom_the_directory_was_taken(directory: SqlDirectory) -> None:
    directory.create_organization("first")
    directory.acting_as("cli bob").create_organization("second")
    assert [line["by"] for line in lines(directory)] == [ANN, "cli bob"]


def test_lines_are_read_newest_first_in_pages(directory: SqlDirectory, clock: FixedClock) -> None:
    made: list[str] = []
    for name in "abcde":
        clock.advance(-1)  # the order is that of the changes, whatever the clock says
        made.append(directory.create_organization(name).id)
    log = directory.audit_log
    assert [line.change.object_id for line in log.lines(limit=1000)] == made[::-1]
    first = log.lines(limit=2)
    second = log.lines(limit=2, before=first[-1].id)
    third = log.lines(limit=2, before=second[-1].id)
    assert [line.change.object_id for line in (*first, *second, *third)] == made[::-1]
    assert log.lines(limit=2, before=third[-1].id) == ()
    assert first == log.lines(limit=1000)[:2]


@pytest.mark.parametrize("unknown", ["aud_x", "", "aud_\udcff", "aud_\x00"])
def test_an_unknown_line_to_go_on_from_is_refused(directory: SqlDirectory, unknown: str) -> None:
    directory.create_organization("acme")
    with pytest.raises(RejectedField) as refused:
        directory.audit_log.lines(limit=1, before=AuditLineId(unknown))
    assert (refused.value.field, str(refused.value)) == (
        "before",
        f"no line of the audit log has the id {unknown!r}",
    )


def test_a_change_outside_the_directory_is_in_reach_of_the_owner_of_its_website(
    directory: SqlDirectory,
) -> None:
    acme = directory.create_organization("acme")
    blog = directory.create_website(name="Blog", organization_id=acme.id)
    before, revision = len(lines(directory)), directory.revision()
    changes = [
        AuditedChange(
            action=AuditAction.ROWS_IMPORT,
            object_id=website_id,
            after={"files": 1},
            website_ids=(website_id,),
        )
        for website_id in (blog.id, WebsiteId("web_deleted"))
    ]
    directory.audit_log.record([*changes, AuditedChange(action=AuditAction.ROWS_PRUNE)])
    assert without_ids(lines(directory)[before:]) == [
        line("rows.import", blog.id, None, {"files": 1}),
        line("rows.import", "web_deleted", None, {"files": 1}),
        line("rows.prune", None, None, None),
    ]
    assert directory.revision() == revision  # workers do not read websites again
    for websites in ((), (blog.id,)):
        found = directory.audit_log.lines(limit=1, reach=AuditReach(acme.id, frozenset(websites)))
        assert [one.change.action for one in found] == [AuditAction.ROWS_IMPORT]


def test_a_website_that_is_forgotten_has_no_name_in_its_lines(
    directory: SqlDirectory, location: Location
) -> None:
    blog, shop = (
        directory.create_website(
            name=name, domain=f"{name}.example", origins=(f"*.{name}.example",)
        )
        for name in ("secret-blog", "shop")
    )
    directory.update_website(blog.id, WebsiteChange(public=True))
    directory.delete_website(blog.id)
    before = lines(directory)
    directory.audit_log.forget_website(blog.id)
    directory.audit_log.forget_website(blog.id)
    directory.audit_log.forget_website(WebsiteId("web_unknown"))
    nameless: dict[str, None] = dict.fromkeys(("name", "domain", "origins"))
    assert lines(directory) == [
        one
        if one["object"] != blog.id
        else {
            **one,
            "before": one["before"] and {**one["before"], **nameless},
            "after": one["after"] and {**one["after"], **nameless},
        }
        for one in before
    ]
    if isinstance(location, Path):
        left = b"".join(file.read_bytes() for file in location.parent.iterdir())
        assert (b"secret-blog" in left, b"shop" in left) == (False, True)
    assert directory.websites() == (shop,)


def test_reach_is_the_organization_and_the_websites_of_a_key(directory: SqlDirectory) -> None:
    acme, bees = directory.create_organization("acme"), directory.create_organization("bees")
    blog, shop, hive = (
        directory.create_website(name=name, organization_id=owner.id)
        for name, owner in (("Blog", acme), ("Shop", acme), ("Hive", bees))
    )
    everywhere, one, both = (
        directory.create_key(
            scopes=READ, organization_id=acme.id, website_ids=tuple(each.id for each in websites)
        )[0]
        for websites in ((), (blog,), (blog, shop))
    )
    directory.update_website(shop.id, WebsiteChange(organization_id=bees.id))

    def seen(owner: Organization, *websites: Website) -> list[str | None]:
        reach = AuditReach(owner.id, frozenset(each.id for each in websites))
        found = directory.audit_log.lines(limit=1000, reach=reach)
        return [line.change.object_id for line in reversed(found)]

    assert seen(acme) == [blog.id, shop.id, everywhere.id, one.id, both.id]
    assert seen(acme, blog) == [blog.id, one.id]
    assert seen(acme, blog, shop) == [blog.id, shop.id, one.id, both.id]
    assert seen(bees) == [hive.id]  # the line of a move shows both organizations
    assert seen(bees, shop) == []
    foreign = directory.audit_log.lines(limit=1, reach=AuditReach(bees.id))[0].id
    with pytest.raises(RejectedField):
        directory.audit_log.lines(limit=1, before=foreign, reach=AuditReach(acme.id))


def test_lines_in_reach_are_found_behind_many_that_are_not(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "directory.sqlite", FixedClock(NOON))
    acme = directory.create_organization("acme")
    blog = directory.create_website(name="Blog", organization_id=acme.id)
    shop = directory.create_website(name="Shop", organization_id=acme.id)
    both = blog.id, shop.id
    for _ in range(150):  # more than are read at once
        directory.create_key(scopes=READ, organization_id=acme.id, website_ids=both)
    reach = AuditReach(acme.id, frozenset({blog.id}))
    (found,) = directory.audit_log.lines(limit=10, reach=reach)
    directory.close()
    assert found.change.object_id == blog.id


_KILLED = """
import os, sys
from headrace.adapters.directory.sql_directory import open_directory
from headrace.base.clock import SystemClock
from headrace.model.tenancy import WebsiteChange, WebsiteId

def die(length):
    os._exit(9)  # asked for the id of the line, when the website is changed already

directory = open_directory(sys.argv[1], SystemClock(), randomness=die)
directory.update_website(WebsiteId(sys.argv[2]), WebsiteChange(name="News"))
"""


def test_a_process_killed_between_a_change_and_its_line_leaves_neither(
    directory: SqlDirectory, location: Location
) -> None:
    website = directory.create_website(name="Blog")
    before = lines(directory)
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(location), website.id], check=False, timeout=60
    )
    assert killed.returncode == 9
    assert directory.websites() == (website,)
    assert lines(directory) == before
    directory.update_website(website.id, WebsiteChange(name="Shop"))
    assert len(lines(directory)) == len(before) + 1


def test_concurrent_changes_have_a_line_each_in_their_order(
    directory: SqlDirectory, location: Location, clock: FixedClock
) -> None:
    organization = directory.create_organization("start")

    def rename(worker: int) -> None:
        own = open_directory(location, clock)
        for number in range(5):
            own.rename_organization(organization.id, f"{worker}-{number}")
        own.close()

    workers = [threading.Thread(target=rename, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = lines(directory)
    names = [line["after"]["name"] for line in found]
    assert len(names) == 21
    assert [line["before"]["name"] for line in found[1:]] == names[:-1]
    assert directory.organizations()[0].name == names[-1]


def replay(found: list[Line]) -> Mapping[str, Any]:
    """Return the objects that lines lead to, oldest first, checking that each goes on from them."""
    objects: dict[str, Any] = {}
    for one in found:
        if one["object"] is None or one["object"].startswith("ses_"):
            continue
        assert objects.get(one["object"]) == one["before"]
        objects[one["object"]] = one["after"]
    return {name: value for name, value in objects.items() if value is not None}


def state(directory: SqlDirectory) -> Mapping[str, Any]:
    keys = directory.keys()
    objects: list[Any] = [
        *map(organization_object, directory.organizations()),
        *map(website_object, directory.websites()),
        *(key_object(key) for key in keys if key.kind is KeyKind.KEY),
    ]
    return {one["id"]: one for one in map(as_json, objects)}


Pick = Callable[[list[Any]], Any]


def _rename_organization(directory: SqlDirectory, pick: Pick) -> None:
    for organization in directory.organizations()[:1]:
        directory.rename_organization(organization.id, pick(["a", "b"]))


def _create_key(directory: SqlDirectory, pick: Pick) -> None:
    website: Website | None = pick([None, *directory.websites()])
    if website is None:
        directory.create_key(scopes=READ)
    elif website.organization_id is not None:
        directory.create_key(
            scopes=READ, organization_id=website.organization_id, website_ids=(website.id,)
        )


def _change_website(directory: SqlDirectory, pick: Pick) -> None:
    change = WebsiteChange(
        name=pick(["Blog", "Shop"]),
        public=pick([True, False]),
        retention=RetentionChange(errors=pick([None, 0, 7])),
    )
    for website in directory.websites()[:1]:
        directory.update_website(website.id, change)


def _move_website(directory: SqlDirectory, pick: Pick) -> None:
    owner: Organization | None = pick([None, *directory.organizations()])
    for website in directory.websites()[-1:]:
        if owner is not None:
            directory.update_website(website.id, WebsiteChange(organization_id=owner.id))


def _delete_any(directory: SqlDirectory, pick: Pick) -> None:
    chosen = pick([None, *directory.organizations(), *directory.websites(), *directory.keys()])
    match chosen:
        case Organization():
            directory.delete_organization(chosen.id)
        case Website():
            directory.delete_website(chosen.id)
        case ApiKey():
            directory.revoke_key(chosen.id)
        case _:
            pass


STEPS: tuple[Callable[[SqlDirectory, Pick], Any], ...] = (
    lambda directory, pick: directory.create_organization(pick(["acme", "default"])),
    lambda directory, _: directory.create_website(name="Blog"),
    _rename_organization,
    lambda directory, _: directory.sessions.begin_with_code(
        directory.sessions.create_code(scopes=READ)
    ),
    _create_key,
    _change_website,
    _move_website,
    _delete_any,
)


@cache
def empty_database() -> bytes:
    """Return the file of a directory without content, which takes long to migrate to."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "directory.sqlite"
        open_directory(path, FixedClock(NOON)).close()
        return path.read_bytes()


def repeatable() -> Randomness:
    """Return bytes that are the same in every run, as Hypothesis needs it."""
    return Random(0).randbytes  # noqa: S311 - for no secrets


@settings(max_examples=examples(30))
@given(st.data())
def test_the_lines_lead_to_the_state_of_the_directory(data: st.DataObject) -> None:
    def pick(choices: list[Any]) -> Any:
        return data.draw(st.sampled_from(choices))

    with TemporaryDirectory() as folder:
        path = Path(folder) / "directory.sqlite"
        path.write_bytes(empty_database())
        with closing(open_directory(path, FixedClock(NOON), randomness=repeatable())) as directory:
            for step in data.draw(st.lists(st.sampled_from(STEPS), max_size=12)):
                step(directory, pick)
            assert replay(lines(directory)) == state(directory)
