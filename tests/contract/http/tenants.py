"""The application over a real directory with two tenants, as administrators of both call it."""

import json
from typing import Any, NamedTuple

from headrace.adapters.directory.sql_directory import SqlDirectory
from headrace.model.tenancy import Organization, Scope, Website
from tests.contract.http.fakes import REQUEST_ID, FakeTenancySource, Harness, Response

CONFIG = frozenset({Scope.MANAGE_CONFIG})


class Tenant(NamedTuple):
    """An organization with two websites, and keys that administer all of it, or one website."""

    organization: Organization
    blog: Website
    shop: Website
    key_id: str
    key: str
    blog_key_id: str
    blog_key: str


class Service:
    """The application over a directory with an operator and one more tenant."""

    def __init__(self, directory: SqlDirectory) -> None:
        self.directory = directory
        self.operator = make_tenant(directory, "default")
        self.acme = make_tenant(directory, "Acme")
        self.harness = Harness()
        self.harness.directory = directory

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None, **headers: str
    ) -> Response:
        """Send one request with a key; the snapshot is the newest, as after a poll."""
        self.harness.tenancy = FakeTenancySource(self.directory.tenancy())
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        wire = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        return self.harness.call(method, f"/v1/admin/{path}", wire, query=query, headers=sent)

    def ids(self, kind: str, key: str) -> list[str]:
        """Return the ids of a list."""
        return [one["id"] for one in data(self.call("GET", kind, key=key))]


def make_tenant(directory: SqlDirectory, name: str) -> Tenant:
    organization = directory.create_organization(name)
    blog, shop = (
        directory.create_website(name=each, organization_id=organization.id)
        for each in ("Blog", "Shop")
    )
    key, secret = directory.create_key(scopes=CONFIG, organization_id=organization.id)
    limited, limited_secret = directory.create_key(
        scopes=CONFIG, organization_id=organization.id, website_ids=(blog.id,)
    )
    return Tenant(organization, blog, shop, key.id, secret, limited.id, limited_secret)


def data(response: Response, status: int = 200) -> Any:
    """Return the data of a success."""
    body = response.json
    assert (response.status, body) == (
        status,
        {"success": True, "data": body.get("data"), "requestId": REQUEST_ID},
    )
    return body["data"]


def refusal(error: str, code: str) -> dict[str, Any]:
    return {"success": False, "error": error, "code": code, "requestId": REQUEST_ID}


def status_and_body(response: Response) -> tuple[int, Any]:
    return response.status, response.json


def rejected(error: str) -> tuple[int, Any]:
    return 400, refusal(f"Invalid request body: {error}", "INVALID_BODY")


NOT_FOUND = (404, refusal("Not found", "NOT_FOUND"))
