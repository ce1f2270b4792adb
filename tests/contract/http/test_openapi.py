"""Replies of the application are those that the OpenAPI document describes."""

# The library leaves the type arguments of its own generics open:
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import requests
import schemathesis
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.quarantine.requeuer import QuarantineRequeuer
from headrace.base.clock import FixedClock
from headrace.base.settings import Settings
from headrace.http.apidocs.openapi import make_document
from headrace.http.apidocs.openapi_responses import SUCCESS_STATUSES
from headrace.http.apidocs.operation_docs import OPERATION_DOCS
from headrace.http.endpoint_operations import (
    ADMIN_KEY_REVOKE,
    ADMIN_KEYS_LIST,
    ADMIN_ORGANIZATION_DELETE,
    ADMIN_ORGANIZATION_SHOW,
    ADMIN_ORGANIZATIONS_LIST,
    ADMIN_WEBSITE_DELETE,
    ADMIN_WEBSITE_SHOW,
    ADMIN_WEBSITES_LIST,
    ERASURES_LIST,
    SAVED_DELETE,
    SAVED_SHOW,
    SESSION_END,
    SESSION_SHOW,
)
from headrace.http.endpoint_spec import EndpointSpec, Operation
from headrace.http.endpoints import (
    ADMIN_AUDIT,
    ADMIN_ENTRY,
    ADMIN_KEY,
    ADMIN_KEYS,
    ADMIN_ORGANIZATION,
    ADMIN_ORGANIZATIONS,
    ADMIN_QUARANTINE,
    ADMIN_RETRY,
    ADMIN_WEBSITE,
    ADMIN_WEBSITES,
    BATCH,
    ENGAGEMENT,
    ERASURE,
    ERASURES,
    ERRORS,
    HEALTH,
    IDENTIFY,
    PAGE,
    QUERY_ENDPOINTS,
    READY,
    SAVED,
    SAVED_ANSWER,
    SAVED_LIST,
    SCHEMA,
    SESSION,
    SQL,
    STANDARD,
    STORAGE,
    SUBJECT_ACCESS,
    TRACK,
    TRACKER_MANIFEST,
    VALUES,
    VITALS,
)
from headrace.model.tenancy import Scope, WebsiteId
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.rate_limiter import RateLimitResult
from headrace.query.result_values import ReadInfo
from headrace.query.standard.service import StandardResult
from tests.contract.http.fakes import (
    NOW_MS,
    SIGN_IN_CODE,
    FakeSessions,
    FakeTenancySource,
    Harness,
    Response,
)
from tests.contract.http.fakes import (
    SESSION as SESSION_SECRET,
)

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SAVED_BODY = {
    "query": {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]},
    "lastDays": 7,
}
COOKIE = {"Cookie": f"headrace_session={SESSION_SECRET}", "Sec-Fetch-Site": "same-origin"}
RATE_IS_USED_UP = RateLimitResult(allowed=False, limit=60, remaining=0, reset_s=7)


@cache
def schema() -> BaseSchema:
    """Return the document without room for fields that it does not name."""
    document = msgspec.json.decode(msgspec.json.encode(make_document(Settings())))
    for one in document["components"]["schemas"].values():
        if "properties" in one:
            one["additionalProperties"] = False
    return schemathesis.openapi.from_dict(document)


class Call(NamedTuple):
    """A call of an operation, and the status of its reply.

    `key` is that of a credential in `Service.credentials`. `id` is in the path in the place of that
    of an object that exists.
    """

    operation: Operation
    status: int
    key: str = "everything"
    body: Any = None
    id: str = ""
    names_website: bool = True
    is_rate_used_up: bool = False


class FakeStandardService:
    """Answers each standard query with one object and one row."""

    async def run(self, website_id: WebsiteId, body: bytes) -> StandardResult:
        assert website_id
        assert body == b""
        return StandardResult(
            data={"summary": {"visitors": 1}, "pages": [{"path": "/", "visitors": 1}]},
            limit=10,
            truncated=False,
            execution_ms=1.5,
            read=ReadInfo(),
            compare=None,
        )


class Service:
    """The application with an object of each kind, and keys that may do everything and nothing."""

    def __init__(self, directory: SqlDirectory, root: Path) -> None:
        default = directory.create_organization("default")
        organization = directory.create_organization("Bees")
        self.paths = DataDirPaths(root)
        self.website = directory.create_website(name="Blog", organization_id=default.id)
        key, secret = directory.create_key(
            scopes=frozenset(Scope), organization_id=default.id, website_ids=()
        )
        _, without_rights = directory.create_key(
            scopes=frozenset({Scope.TRACK_EVENTS}), organization_id=default.id
        )
        self.credentials = {
            "everything": {"Authorization": f"Bearer {secret}"},
            "nothing": {"x-api-key": without_rights},
            "unknown": {"x-api-key": "hr_unknown"},
            "none": {},
            "cookie": COOKIE,
        }
        self.ids = {
            SAVED: "top",
            SAVED_ANSWER: "top",
            ERASURE: "era_1",
            ADMIN_ORGANIZATION: organization.id,
            ADMIN_WEBSITE: self.website.id,
            ADMIN_KEY: key.id,
            **self._fill_quarantine(FileQuarantine(self.paths.quarantine)),
        }
        self.harness = Harness()
        self.harness.directory = directory
        self.harness.tenancy = FakeTenancySource(directory.tenancy())
        self.harness.sessions = FakeSessions(self.harness.tenancy)
        self.harness.standard = FakeStandardService()
        self.harness.quarantine = QuarantineRequeuer(
            self.paths.quarantine,
            log_root=self.paths.log,
            to_log_record=lambda entry: msgspec.json.encode(entry.item),
            record_changes=lambda _by, _changes: None,
            clock=FixedClock(NOW_MS),
        )
        self.reply(Call(SAVED.first, 201, body=SAVED_BODY))
        self.reply(Call(ERASURES.first, 202, body={"anonymousId": "a"}))
        self.reply(Call(SESSION.first, 200, "none", {"code": SIGN_IN_CODE}))

    def reply(self, call: Call) -> Response:
        """Send one request."""
        if call.is_rate_used_up:
            self.harness.limiter.verdict = RATE_IS_USED_UP
            self.harness.write_limiter.verdict = RATE_IS_USED_UP
        endpoint = call.operation.endpoint
        website = f"website_id={self.website.id}"
        return self.harness.call(
            call.operation.method,
            self._path(endpoint, call.id),
            b"" if call.body is None else json.dumps(call.body).encode(),
            query=website if _takes_website(call.operation) and call.names_website else "",
            headers={**self.credentials[call.key], "Content-Type": "application/json"},
        )

    def _fill_quarantine(self, files: FileQuarantine) -> dict[EndpointSpec, str]:
        """Quarantine an item and a record; return the id of the item for its endpoints."""
        item = {"website_id": self.website.id, "name": "bought"}
        files.put(
            QuarantineEntry(
                "gone", LogOffset(1, 1), "too large", stream="events", index=0, item=item
            )
        )
        entry_id = files.ids()[0]
        files.put(QuarantineEntry("gone", LogOffset(1, 2), "no record", payload=b"record"))
        return {ADMIN_ENTRY: entry_id, ADMIN_RETRY: entry_id}

    def _path(self, endpoint: EndpointSpec, object_id: str) -> str:
        given = object_id or self.ids.get(endpoint, "")
        return endpoint.path.format(name=given, id=given, format="json")


def _takes_website(operation: Operation) -> bool:
    described = schema()[operation.endpoint.path][operation.method]
    return "website_id" in {one.name for one in described.query}


CALLS = (
    Call(SAVED.first, 200, body=SAVED_BODY),
    Call(SAVED.first, 201, body=SAVED_BODY, id="other"),
    Call(SAVED_LIST.first, 200),
    Call(SAVED_SHOW, 200),
    Call(SAVED_SHOW, 400, names_website=False),
    Call(SAVED_SHOW, 401, "none"),
    Call(SAVED_SHOW, 403, "nothing"),
    Call(SAVED_SHOW, 404, id="other"),
    Call(SAVED_SHOW, 429, is_rate_used_up=True),
    Call(SAVED_DELETE, 200),
    Call(SAVED_DELETE, 400, names_website=False),
    Call(SAVED_DELETE, 401, "unknown"),
    Call(SAVED_DELETE, 403, "nothing"),
    Call(SAVED_DELETE, 404, id="other"),
    Call(SAVED_DELETE, 429, is_rate_used_up=True),
    Call(ERASURES.first, 200, body={"anonymousId": "a", "dryRun": True}),
    Call(ERASURES.first, 202, body={"anonymousId": "a"}),
    Call(ERASURE.first, 200),
    Call(ERASURES_LIST, 200),
    Call(ERASURES_LIST, 200, is_rate_used_up=True),
    Call(ERASURES_LIST, 400, names_website=False),
    Call(ERASURES_LIST, 401, "none"),
    Call(ERASURES_LIST, 403, "nothing"),
    Call(SESSION.first, 200, "none", {"code": SIGN_IN_CODE}),
    Call(SESSION_SHOW, 200, "cookie"),
    Call(SESSION_SHOW, 401, "everything"),
    Call(SESSION_END, 204, "cookie"),
    Call(SESSION_END, 204, "none"),
    Call(ADMIN_ORGANIZATIONS.first, 201, body={"name": "Wasps"}),
    Call(ADMIN_ORGANIZATIONS_LIST, 200),
    Call(ADMIN_ORGANIZATIONS_LIST, 401, "none"),
    Call(ADMIN_ORGANIZATIONS_LIST, 403, "nothing"),
    Call(ADMIN_ORGANIZATION.first, 200, body={"name": "Wasps"}),
    Call(ADMIN_ORGANIZATION_SHOW, 200),
    Call(ADMIN_ORGANIZATION_SHOW, 200, is_rate_used_up=True),
    Call(ADMIN_ORGANIZATION_SHOW, 404, id="unknown"),
    Call(ADMIN_ORGANIZATION_DELETE, 200),
    Call(ADMIN_ORGANIZATION_DELETE, 404, id="unknown"),
    Call(ADMIN_ORGANIZATION_DELETE, 429, is_rate_used_up=True),
    Call(ADMIN_WEBSITES.first, 201, body={"name": "Shop", "retention": {"days": 3}}),
    Call(ADMIN_WEBSITES_LIST, 200),
    Call(ADMIN_WEBSITES_LIST, 401, "unknown"),
    Call(ADMIN_WEBSITES_LIST, 403, "nothing"),
    Call(ADMIN_WEBSITE.first, 200, body={"public": True}),
    Call(ADMIN_WEBSITE_SHOW, 200),
    Call(ADMIN_WEBSITE_SHOW, 404, id="unknown"),
    Call(ADMIN_WEBSITE_DELETE, 200),
    Call(ADMIN_WEBSITE_DELETE, 403, "nothing"),
    Call(ADMIN_WEBSITE_DELETE, 404, id="unknown"),
    Call(ADMIN_WEBSITE_DELETE, 429, is_rate_used_up=True),
    Call(ADMIN_KEYS.first, 201, body={"scopes": ["read:data"], "expires": "2027-01-31"}),
    Call(ADMIN_KEYS_LIST, 200),
    Call(ADMIN_KEYS_LIST, 401, "none"),
    Call(ADMIN_KEYS_LIST, 403, "nothing"),
    Call(ADMIN_KEY.first, 200),
    Call(ADMIN_KEY_REVOKE, 200),
    Call(ADMIN_KEY_REVOKE, 401, "none"),
    Call(ADMIN_KEY_REVOKE, 404, id="unknown"),
    Call(ADMIN_KEY_REVOKE, 429, is_rate_used_up=True),
    Call(ADMIN_QUARANTINE.first, 200),
    Call(ADMIN_ENTRY.first, 200),
    Call(ADMIN_RETRY.first, 200),
    Call(ADMIN_AUDIT.first, 200),
    Call(STORAGE.first, 200),
    Call(SUBJECT_ACCESS.first, 200, body={"anonymousId": "a"}),
    *(Call(one.first, 200) for one in (*QUERY_ENDPOINTS, STANDARD, VALUES, SCHEMA)),
    Call(SQL.first, 200, body=SAVED_BODY),
    Call(SAVED_ANSWER.first, 200),
    *(Call(one.first, 200, body=[{"name": "signup"}]) for one in (TRACK, VITALS, ERRORS)),
    Call(BATCH.first, 200, body=[{"name": "signup"}]),
    *(Call(one.first, 200, body={"name": "a"}) for one in (PAGE, ENGAGEMENT, IDENTIFY)),
    *(Call(one.first, 200) for one in (HEALTH, READY, TRACKER_MANIFEST)),
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    directory = open_directory(tmp_path / "directory.sqlite", FixedClock(NOW_MS))
    yield Service(directory, tmp_path)
    directory.close()


def test_the_document_is_valid() -> None:
    schema().validate()


def test_every_success_with_json_is_called() -> None:
    called = {(call.operation, call.status) for call in CALLS if call.status < 300}

    assert called >= {
        (one, status)
        for one, doc in OPERATION_DOCS.items()
        if doc.response is not None
        for status in SUCCESS_STATUSES.get(one, (200,))
    }


def named(call: Call) -> str:
    return f"{call.operation.name}-{call.status}"


@pytest.mark.parametrize("call", CALLS, ids=named)
def test_a_reply_is_as_described(service: Service, call: Call) -> None:
    response = service.reply(call)

    assert response.status == call.status
    described = schema()[call.operation.endpoint.path][call.operation.method]
    case = described.Case(path_parameters={one.name: "x" for one in described.path_parameters})
    case.validate_response(
        schemathesis.Response(
            status_code=response.status,
            headers={name: [value] for name, value in response.headers.items()},
            content=response.body,
            request=requests.Request(call.operation.method, "http://service.example/").prepare(),
            elapsed=0.0,
            verify=False,
        ),
        checks=CHECKS,
    )
