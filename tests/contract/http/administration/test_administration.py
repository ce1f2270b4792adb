"""/v1/admin over a real directory: what is listed and changed, by whom, and how it is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.directory.sql_directory import open_directory
from headrace.base.clock import FixedClock
from headrace.base.errors import OperatorError
from headrace.model.tenancy import Scope, hash_secret
from headrace.ports.rate_limiter import RateLimitResult
from testing.servers.shared_state import PostgreSQL
from tests.contract.http.fakes import NOW_MS
from tests.contract.http.tenants import (
    CONFIG,
    NOT_FOUND,
    Service,
    data,
    refusal,
    rejected,
    status_and_body,
)

NOW = "2026-01-05T10:00:00.000Z"
EVERYTHING_BUT_CONFIG = frozenset(Scope) - CONFIG
KINDS = ("organizations", "websites", "keys")
ALL_BUT_LAST = ("track:events", "read:data", "manage:data")


@pytest.fixture(params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    location: Path | str = tmp_path / "directory.sqlite"
    if request.param == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        location = server.new_database()
    directory = open_directory(location, FixedClock(NOW_MS))
    yield Service(directory)
    directory.close()


@pytest.fixture
def sqlite_service(tmp_path: Path) -> Iterator[Service]:
    """The breadth of refusals and reach runs on SQLite alone: no SQL is different there."""
    directory = open_directory(tmp_path / "directory.sqlite", FixedClock(NOW_MS))
    yield Service(directory)
    directory.close()


def test_a_website_is_created_read_changed_and_deleted(service: Service) -> None:
    key, owner = service.acme.key, service.acme.organization.id
    given = {
        "name": "  News ",
        "domain": "news.example",
        "public": True,
        "origins": ["HTTPS://News.example:443"],
        "retention": {"days": 30, "errors": 7},
    }
    response = service.call("POST", "websites", given, key=key)
    made = data(response, 201)
    assert "cache-control" not in response.headers
    assert made == {
        "id": made["id"],
        "name": "News",
        "domain": "news.example",
        "organization": owner,
        "public": True,
        "origins": ["https://news.example"],
        "retention": {"days": 30, "events": None, "errors": 7, "performance": None},
        "created": NOW,
    }
    path = f"websites/{made['id']}"
    assert data(service.call("GET", path, key=key)) == made
    assert data(service.call("GET", "websites", key=key))[-1] == made
    change: Any = {"public": False, "origins": [], "retention": {"errors": None}}
    changed = data(service.call("PATCH", path, change, key=key))
    retention = {"days": 30, "events": None, "errors": None, "performance": None}
    assert changed == {**made, "public": False, "origins": [], "retention": retention}
    assert data(service.call("GET", path, key=key)) == changed
    assert data(service.call("PATCH", path, {}, key=key)) == changed
    deleted = data(service.call("DELETE", path, key=key))
    assert deleted == {"id": made["id"], "deleted": True}
    assert status_and_body(service.call("GET", path, key=key)) == NOT_FOUND


def test_a_key_is_created_shown_once_and_revoked(service: Service) -> None:
    key, owner, blog = service.acme.key, service.acme.organization.id, service.acme.blog.id
    given = {
        "scopes": ["read:data", "track:events"],
        "websites": [blog],
        "home": blog,
        "expires": "2027-01-31",
    }
    response = service.call("POST", "keys", given, key=key)
    made = data(response, 201)
    assert response.headers["cache-control"] == "no-store"
    secret = made.pop("key")
    assert made == {
        "id": made["id"],
        "prefix": secret[: len(made["prefix"])],
        "scopes": ["read:data", "track:events"],
        "organization": owner,
        "websites": [blog],
        "home": blog,
        "created": NOW,
        "expires": "2027-01-31T00:00:00.000Z",
        "kind": "key",
        "revoked": None,
    }
    assert service.directory.tenancy().keys[hash_secret(secret)].id == made["id"]
    path = f"keys/{made['id']}"
    assert data(service.call("GET", path, key=key)) == made
    listed = service.call("GET", "keys", key=key)
    assert made in data(listed)
    assert secret not in listed.body.decode()
    revoked = data(service.call("DELETE", path, key=key))
    assert revoked == {**made, "revoked": NOW}
    assert hash_secret(secret) not in service.directory.tenancy().keys


def test_an_operator_creates_renames_and_deletes_an_organization(service: Service) -> None:
    key = service.operator.key
    made = data(service.call("POST", "organizations", {"name": "Bees"}, key=key), 201)
    assert made == {"id": made["id"], "name": "Bees", "created": NOW}
    path = f"organizations/{made['id']}"
    renamed = data(service.call("PATCH", path, {"name": "Wasps"}, key=key))
    assert renamed == {**made, "name": "Wasps"}
    assert data(service.call("GET", path, key=key)) == renamed
    assert data(service.call("GET", "organizations", key=key))[-1] == renamed
    owned = {"name": "Nest", "organization": made["id"]}
    nest = data(service.call("POST", "websites", owned, key=key), 201)
    deleted = data(service.call("DELETE", path, key=key))
    assert deleted == {"id": made["id"], "deleted": True}
    left = data(service.call("GET", f"websites/{nest['id']}", key=key))
    assert left == {**nest, "organization": None}


def test_an_operator_reaches_everything(sqlite_service: Service) -> None:
    operator, acme = sqlite_service.operator, sqlite_service.acme
    tenants = (operator, acme)
    assert sqlite_service.ids("organizations", operator.key) == [
        each.organization.id for each in tenants
    ]
    assert sqlite_service.ids("websites", operator.key) == [
        website.id for each in tenants for website in (each.blog, each.shop)
    ]
    assert sqlite_service.ids("keys", operator.key) == [
        key for each in tenants for key in (each.key_id, each.blog_key_id)
    ]
    moved = {"organization": operator.organization.id}
    path = f"websites/{acme.shop.id}"
    changed = data(sqlite_service.call("PATCH", path, moved, key=operator.key))
    assert changed["organization"] == operator.organization.id


def test_without_an_organization_what_is_created_belongs_to_that_of_the_caller(
    sqlite_service: Service,
) -> None:
    for tenant in (sqlite_service.operator, sqlite_service.acme):
        website = sqlite_service.call("POST", "websites", {"name": "New"}, key=tenant.key)
        key = sqlite_service.call("POST", "keys", {"scopes": ["read:data"]}, key=tenant.key)
        owners = [data(each, 201)["organization"] for each in (website, key)]
        assert owners == [tenant.organization.id] * 2


def test_a_key_reaches_the_websites_and_keys_of_its_organization_alone(
    sqlite_service: Service,
) -> None:
    acme = sqlite_service.acme
    assert sqlite_service.ids("organizations", acme.key) == []
    assert sqlite_service.ids("websites", acme.key) == [acme.blog.id, acme.shop.id]
    assert sqlite_service.ids("keys", acme.key) == [acme.key_id, acme.blog_key_id]


def test_a_limited_key_reaches_its_websites_and_the_keys_within_them(
    sqlite_service: Service,
) -> None:
    for tenant in (sqlite_service.operator, sqlite_service.acme):
        assert sqlite_service.ids("organizations", tenant.blog_key) == []
        assert sqlite_service.ids("websites", tenant.blog_key) == [tenant.blog.id]
        assert sqlite_service.ids("keys", tenant.blog_key) == [tenant.blog_key_id]


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_what_is_out_of_reach_is_as_what_does_not_exist(
    sqlite_service: Service, method: str
) -> None:
    operator, acme = sqlite_service.operator, sqlite_service.acme
    before = sqlite_service.directory.revision()
    body = {"name": "Mine"} if method == "PATCH" else None
    for key, paths in (
        (
            acme.key,
            (f"organizations/{acme.organization.id}", f"organizations/{operator.organization.id}"),
        ),
        (acme.key, (f"websites/{operator.blog.id}", "websites/web_unknown", "websites/%00")),
        (acme.blog_key, (f"websites/{acme.shop.id}", f"organizations/{acme.organization.id}")),
        (operator.blog_key, (f"websites/{acme.blog.id}", f"websites/{operator.shop.id}")),
    ):
        for path in paths:
            assert status_and_body(sqlite_service.call(method, path, body, key=key)) == NOT_FOUND
    if method != "PATCH":
        for key, key_id in (
            (acme.key, operator.key_id),
            (acme.blog_key, acme.key_id),
            (operator.blog_key, acme.blog_key_id),
            (acme.key, "key_unknown"),
        ):
            response = sqlite_service.call(method, f"keys/{key_id}", key=key)
            assert status_and_body(response) == NOT_FOUND
    assert sqlite_service.directory.revision() == before


def test_ids_out_of_reach_in_a_body_are_refused_as_unknown_ones(sqlite_service: Service) -> None:
    operator, acme = sqlite_service.operator, sqlite_service.acme
    before = sqlite_service.directory.revision()
    theirs, unknown = operator.organization.id, "org_unknown"
    for organization in (theirs, unknown):
        expected = rejected(f"organization: no organization has the id {organization!r}")
        for method, path, body in (
            ("POST", "websites", {"name": "New"}),
            ("PATCH", f"websites/{acme.blog.id}", {}),
            ("POST", "keys", {"scopes": ["read:data"]}),
        ):
            given = {**body, "organization": organization}
            response = sqlite_service.call(method, path, given, key=acme.key)
            assert status_and_body(response) == expected
    for key, website in (
        (acme.key, operator.blog.id),
        (acme.key, "web_unknown"),
        (acme.blog_key, acme.shop.id),
    ):
        for field, value in (("websites", [website]), ("home", website)):
            given = {"scopes": ["track:events"], "websites": [acme.blog.id], field: value}
            response = sqlite_service.call("POST", "keys", given, key=key)
            expected = rejected(f"{field}: no website has the id {website!r}")
            assert status_and_body(response) == expected
    assert sqlite_service.directory.revision() == before


def test_a_limited_key_creates_nothing_that_reaches_further(sqlite_service: Service) -> None:
    acme = sqlite_service.acme
    for path, body, error in (
        (
            "keys",
            {"scopes": ["read:data"]},
            f"websites: name at least one of those of your key: {acme.blog.id}",
        ),
        (
            "websites",
            {"name": "New"},
            "name: a key that is limited to websites cannot create another",
        ),
        (
            "organizations",
            {"name": "New"},
            "name: only an unlimited key of the organization default creates organizations",
        ),
    ):
        response = sqlite_service.call("POST", path, body, key=acme.blog_key)
        assert status_and_body(response) == rejected(error)
    given = {"scopes": ["manage:data"], "websites": [acme.blog.id]}
    made = data(sqlite_service.call("POST", "keys", given, key=acme.blog_key), 201)
    assert (made["scopes"], made["websites"]) == (["manage:data"], [acme.blog.id])


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("websites", [], "it must be an object, not an array"),
        ("websites", {}, 'missing key "name"'),
        ("websites", {"nmae": "x"}, 'unknown key "nmae" (did you mean "name"?)'),
        ("websites", {"name": 7}, "name must be a string, not a number"),
        ("websites", {"name": " "}, "name: the name of a website must not be empty"),
        (
            "websites",
            {"name": "x", "origins": ["ftp"]},
            "origins: 'ftp' is not an origin: write scheme://host, scheme://host:port or *.domain",
        ),
        (
            "websites",
            {"name": "x", "retention": {"days": -1}},
            "retention: rows cannot be kept for -1 days: give 0 (for ever) to 36500",
        ),
        (
            "websites",
            {"name": "x", "retention": {"days": 1.5}},
            "retention.days must be a whole number, not a number with a fraction",
        ),
        (
            "websites",
            {"name": "x", "retention": {"days": "7"}},
            "retention.days must be a whole number, not a string",
        ),
        (
            "keys",
            {"scopes": ["read:dat"]},
            'scopes: unknown scope "read:dat" (did you mean "read:data"?)',
        ),
        (
            "keys",
            {"scopes": []},
            f"scopes: a key needs at least one scope: {', '.join(ALL_BUT_LAST)} or manage:config",
        ),
        (
            "keys",
            {"scopes": ["read:data"], "expires": "soon"},
            "expires: 'soon' is not an ISO 8601 date, such as 2027-01-31 or 2027-01-31T12:00:00Z",
        ),
        (
            "keys",
            {"scopes": ["read:data"], "expires": "9999-12-31T23:59:59-00:01"},
            "expires: '9999-12-31T23:59:59-00:01' is not in the years 1 to 9999 of UTC",
        ),
        ("keys", {"scopes": ["track:events"], "home": ""}, "home: no website has the id ''"),
        ("organizations", {"name": "a\nb"}, None),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_refusal_names_the_field(
    sqlite_service: Service, path: str, body: Any, error: str | None
) -> None:
    response = sqlite_service.call("POST", path, body, key=sqlite_service.operator.key)
    error = error or (
        "name: the name of an organization must be one line of printable text, and 'a\\nb' is not"
    )
    assert status_and_body(response) == rejected(error)


@pytest.mark.parametrize("kind", KINDS)
def test_the_scope_manage_config_is_required(sqlite_service: Service, kind: str) -> None:
    _, secret = sqlite_service.directory.create_key(scopes=EVERYTHING_BUT_CONFIG)
    for method in ("GET", "POST"):
        assert status_and_body(sqlite_service.call(method, kind, key=None)) == (
            401,
            refusal("Authentication required", "UNAUTHORIZED"),
        )
        assert status_and_body(sqlite_service.call(method, kind, key="hr_unknown")) == (
            401,
            refusal("Invalid API key", "INVALID_API_KEY"),
        )
        assert status_and_body(sqlite_service.call(method, kind, key=secret)) == (
            403,
            refusal("API key missing manage:config scope", "MISSING_SCOPE"),
        )


def test_changes_count_towards_the_rate_of_writing_calls_and_reads_do_not(
    sqlite_service: Service,
) -> None:
    acme, limiter = sqlite_service.acme, sqlite_service.harness.write_limiter
    assert sqlite_service.call("GET", "keys", key=acme.key).status == 200
    assert limiter.callers == []
    limiter.verdict = RateLimitResult(allowed=False, limit=60, remaining=0, reset_s=9)
    response = sqlite_service.call("POST", "websites", {"name": "x"}, key=acme.key)
    assert limiter.callers == [f"write:key:{acme.key_id}"]
    assert (response.status, response.headers["retry-after"]) == (429, "9")
    assert len(sqlite_service.directory.websites()) == 4


def test_keys_cannot_be_changed(sqlite_service: Service) -> None:
    acme = sqlite_service.acme
    response = sqlite_service.call("PATCH", f"keys/{acme.key_id}", {}, key=acme.key)
    assert response.status == 405
    assert response.headers["allow"] == "GET, DELETE"


def test_no_other_page_may_call_administration(sqlite_service: Service) -> None:
    key = sqlite_service.operator.key
    response = sqlite_service.call("GET", "keys", key=key, Origin="https://elsewhere.example")
    assert not {name for name in response.headers if name.startswith("access-control-")}


def test_a_directory_that_fails_is_unavailable(sqlite_service: Service) -> None:
    class Failing:
        def organizations(self) -> Any:
            raise OperatorError("cannot open the directory")

    sqlite_service.harness.directory = Failing()
    response = sqlite_service.call("GET", "websites", key=sqlite_service.operator.key)
    assert status_and_body(response) == (503, refusal("Service unavailable", "UNAVAILABLE"))


def test_a_session_administers_from_the_page_alone_and_within_its_reach(
    sqlite_service: Service,
) -> None:
    acme, sessions = sqlite_service.acme, sqlite_service.directory.sessions
    code = sessions.create_code(
        scopes=CONFIG, organization_id=acme.organization.id, website_ids=(acme.blog.id,)
    )
    begun = sessions.begin_with_code(code)
    assert begun is not None
    cookie = {"Cookie": f"headrace_session={begun[1]}"}
    same = sqlite_service.call("GET", "websites", key=None, Sec_Fetch_Site="same-origin", **cookie)
    assert [one["id"] for one in data(same)] == [acme.blog.id]
    for site in ("same-site", "cross-site", "none"):
        elsewhere = sqlite_service.call("GET", "websites", key=None, Sec_Fetch_Site=site, **cookie)
        assert status_and_body(elsewhere) == (
            401,
            refusal("Authentication required", "UNAUTHORIZED"),
        )
