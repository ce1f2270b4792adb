"""Bodies that differ from a valid one in one part, and what a refusal of a query must say."""

from typing import Any

import requests

from tests.e2e.queries import body, query, where
from tests.e2e.service import Service, bearer
from tests.oracle.check import CAUSES

Body = dict[str, Any]


def post_query(service: Service, website: str, sent: Any) -> requests.Response:
    """Send a body, or raw bytes, with a valid key."""
    path = f"/v1/query/custom?website_id={website}"
    if isinstance(sent, bytes):
        return service.post(path, data=sent, headers=bearer(service.master))
    return service.post(path, sent, headers=bearer(service.master))


def hold_refused(reply: requests.Response, code: str, *culprits: str) -> str:
    """Hold that a reply is the whole refusal with a code; its error begins with the cause."""
    whole = reply.json()
    error, request_id = whole.pop("error", ""), whole.pop("requestId", None)
    assert (reply.status_code, whole) == (400, {"success": False, "code": code}), reply.text
    assert isinstance(request_id, str)
    assert request_id
    assert error.startswith(CAUSES[code]), error
    assert [culprit for culprit in culprits if culprit not in error] == [], error
    return str(error)


def asked(**parts: Any) -> Body:
    """Return a body whose query object has these keys instead of the valid ones."""
    return body({**query(), **parts})


def selecting(field: Any, aggregate: Any, **parts: Any) -> Body:
    return asked(selects=[{"field": field, "aggregate": aggregate, **parts}])


def filtering(field: Any, operator: Any, value: Any, table: str = "events") -> Body:
    return asked(table=table, filters=[where(field, operator, value)])


def times(count: int, item: Any) -> list[Any]:
    return [item] * count
