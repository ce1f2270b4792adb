"""Bodies that differ from a valid one in one part, and the expected error envelope."""

from typing import Any

import requests

from testing.service import Service, bearer
from tests.e2e.query.queries import body, query, where
from tests.oracle.check import ERROR_PREFIXES

Body = dict[str, Any]


def post_query(service: Service, website: str, sent: Any) -> requests.Response:
    """Send a body, or raw bytes, with a valid key."""
    path = f"/v1/query/custom?website_id={website}"
    if isinstance(sent, bytes):
        return service.post(path, data=sent, headers=bearer(service.master))
    return service.post(path, sent, headers=bearer(service.master))


def assert_rejected(response: requests.Response, code: str, *details: str) -> str:
    """Check the whole 400 response and its code; the error must begin with the code's prefix."""
    full_body = response.json()
    error, request_id = full_body.pop("error", ""), full_body.pop("requestId", None)
    assert (response.status_code, full_body) == (400, {"success": False, "code": code}), (
        response.text
    )
    assert isinstance(request_id, str)
    assert request_id
    assert error.startswith(ERROR_PREFIXES[code]), error
    assert [detail for detail in details if detail not in error] == [], error
    return str(error)


def query_body(**parts: Any) -> Body:
    """Return a body whose query object has these keys in place of the valid ones."""
    return body({**query(), **parts})


def selecting(field: Any, aggregate: Any, **parts: Any) -> Body:
    return query_body(selects=[{"field": field, "aggregate": aggregate, **parts}])


def filtering(field: Any, operator: Any, value: Any, table: str = "events") -> Body:
    return query_body(table=table, filters=[where(field, operator, value)])


def times(count: int, item: Any) -> list[Any]:
    return [item] * count
