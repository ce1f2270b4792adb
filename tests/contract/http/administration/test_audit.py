"""GET /v1/admin/audit over a real directory: who sees which lines, and how it is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.directory.sql_directory import open_directory
from headrace.base.clock import FixedClock
from headrace.model.audit import AuditAction, AuditedChange
from headrace.model.tenancy import Scope
from tests.contract.http.fakes import NOW_MS
from tests.contract.http.tenants import (
    CONFIG,
    Service,
    data,
    refusal,
    rejected,
    status_and_body,
)

NOW = "2026-01-05T10:00:00.000Z"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    directory = open_directory(tmp_path / "directory.sqlite", FixedClock(NOW_MS))
    yield Service(directory)
    directory.close()


def lines(service: Service, key: str | None, parameters: str = "", **headers: str) -> Any:
    return data(service.call("GET", f"audit{parameters}", key=key, **headers))


def test_a_change_over_http_has_a_line_by_its_key(service: Service) -> None:
    acme = service.acme
    before = data(service.call("GET", f"websites/{acme.blog.id}", key=acme.key))
    change = {"name": "News", "public": True}
    after = data(service.call("PATCH", f"websites/{acme.blog.id}", change, key=acme.key))
    (line,) = lines(service, acme.key, "?limit=1")
    assert line == {
        "id": line["id"],
        "time": NOW,
        "by": acme.key_id,
        "action": "website.update",
        "object": acme.blog.id,
        "before": before,
        "after": after,
    }


def test_a_change_on_the_page_has_a_line_by_its_session(service: Service) -> None:
    acme, sessions = service.acme, service.directory.sessions
    code = sessions.create_code(scopes=CONFIG, organization_id=acme.organization.id)
    begun = sessions.begin_with_code(code)
    assert begun is not None
    session, secret = begun
    page = {"Cookie": f"headrace_session={secret}", "Sec_Fetch_Site": "same-origin"}
    made = data(service.call("POST", "keys", {"scopes": ["read:data"]}, key=None, **page), 201)
    found = lines(service, None, "?limit=2", **page)
    assert [(line["by"], line["action"], line["object"]) for line in found] == [
        (f"session {session.id}", "key.create", made["id"]),
        (f"session {session.id}", "code.use", session.id),
    ]
    assert made["key"] not in str(found)


def test_reads_and_refused_changes_have_no_line(service: Service) -> None:
    acme = service.acme
    before = lines(service, service.operator.key)
    for method, path, body in (
        ("GET", "websites", None),
        ("POST", "websites", {"name": " "}),
        ("PATCH", f"websites/{acme.blog.id}", {"organization": service.operator.organization.id}),
        ("DELETE", f"websites/{service.operator.blog.id}", None),
        ("DELETE", f"organizations/{acme.organization.id}", None),
    ):
        service.call(method, path, body, key=acme.key)
    assert lines(service, service.operator.key) == before


def test_a_caller_sees_the_lines_of_what_it_reaches(service: Service) -> None:
    operator, acme = service.operator, service.acme

    def objects(key: str) -> list[str]:
        return [line["object"] for line in reversed(lines(service, key))]

    own = [acme.blog.id, acme.shop.id, acme.key_id, acme.blog_key_id]
    assert objects(acme.key) == own
    assert objects(acme.blog_key) == [acme.blog.id, acme.blog_key_id]
    assert objects(operator.blog_key) == [operator.blog.id, operator.blog_key_id]
    assert objects(operator.key) == [
        operator.organization.id,
        *(operator.blog.id, operator.shop.id, operator.key_id, operator.blog_key_id),
        acme.organization.id,
        *own,
    ]


def test_pages_follow_one_another_within_the_reach(service: Service) -> None:
    key = service.acme.key
    everything = lines(service, key)
    pages = [lines(service, key, "?limit=3")]
    while pages[-1]:
        pages.append(lines(service, key, f"?limit=3&before={pages[-1][-1]['id']}"))
    assert [len(page) for page in pages] == [3, 1, 0]
    assert [line for page in pages for line in page] == everything
    assert lines(service, key, "?limit=&before=") == everything  # empty values count as absent


def test_the_limit_is_a_hundred_and_at_most_a_thousand(service: Service) -> None:
    change = AuditedChange(action=AuditAction.ROWS_PRUNE)
    service.directory.audit_log.record([change] * 1_100)
    key = service.operator.key
    assert [len(lines(service, key, query)) for query in ("", "?limit=1000", "?limit=1001")] == [
        100,
        1_000,
        1_000,
    ]


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "ten", "%00", "1" * 5_000])
def test_a_limit_that_is_no_number_is_refused(service: Service, limit: str) -> None:
    response = service.call("GET", f"audit?limit={limit}", key=service.operator.key)
    assert status_and_body(response) == (
        400,
        refusal("Invalid limit: must be a whole number from 1", "INVALID_LIMIT"),
    )


def test_an_unknown_parameter_is_refused(service: Service) -> None:
    response = service.call("GET", "audit?limits=5", key=service.operator.key)
    assert status_and_body(response) == (
        400,
        refusal('Invalid parameter "limits" (did you mean "limit"?)', "INVALID_PARAMETER"),
    )


def test_a_line_out_of_reach_is_refused_as_an_unknown_one(service: Service) -> None:
    foreign = lines(service, service.operator.key, "?limit=1")[0]["id"]
    acme = service.acme
    foreign_key = service.operator.blog_key
    for before, key in (("aud_x", acme.key), (foreign, foreign_key)):
        response = service.call("GET", f"audit?before={before}", key=key)
        assert status_and_body(response) == rejected(
            f"before: no line of the audit log has the id {before!r}"
        )


def test_the_audit_log_needs_the_scope_and_takes_nothing_but_get(service: Service) -> None:
    _, secret = service.directory.create_key(scopes=frozenset(Scope) - CONFIG)
    assert status_and_body(service.call("GET", "audit", key=None)) == (
        401,
        refusal("Authentication required", "UNAUTHORIZED"),
    )
    assert status_and_body(service.call("GET", "audit", key=secret)) == (
        403,
        refusal("API key missing manage:config scope", "MISSING_SCOPE"),
    )
    response = service.call("DELETE", "audit", key=service.operator.key)
    assert (response.status, response.headers["allow"]) == (405, "GET")
    assert service.harness.write_limiter.callers == []
