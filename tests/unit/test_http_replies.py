from collections.abc import Iterator

import msgspec
import pytest

from headrace.base.errors import (
    CallerError,
    Fault,
    HeadraceError,
    InvalidBody,
    InvalidQuery,
    MethodNotAllowed,
    MissingScope,
    OperatorError,
    QueryFault,
    RateLimited,
    RequestTimeout,
    StoreUnavailable,
    Unavailable,
)
from headrace.http.endpoints import ENDPOINTS, UNKNOWN
from headrace.http.responses import INTERNAL, REFUSALS, Envelope, Header, refusal_of, refuse

JSON: Header = (b"content-type", b"application/json")


def family(root: type[HeadraceError]) -> Iterator[type[HeadraceError]]:
    """Return what the tree has below an error; adapters may have narrower ones of their own."""
    for child in root.__subclasses__():
        if child.__module__ == root.__module__:
            yield child
            yield from family(child)


def test_table_has_every_error_of_the_tree_and_no_other() -> None:
    assert set(REFUSALS) == {*family(CallerError), Unavailable, *family(Unavailable)}


def test_every_refusal_is_one_that_some_endpoint_may_give() -> None:
    given = {error for row in (*ENDPOINTS, UNKNOWN) for error in row.refusals}

    assert set(REFUSALS) - given == {Unavailable}


@pytest.mark.parametrize(
    "error", [ValueError("x"), OperatorError("x"), HeadraceError("x"), KeyboardInterrupt()]
)
def test_error_outside_the_table_is_internal(error: BaseException) -> None:
    assert refusal_of(error) is INTERNAL


def test_faults_are_listed_in_the_envelope_of_ingestion() -> None:
    error = InvalidBody((Fault(0, "name", "is required"), Fault(2, "", "must be an object")))

    reply = refuse(error, Envelope.INGESTION, "id")

    assert (reply.status, reply.headers) == (400, (JSON,))
    assert msgspec.json.decode(reply.body) == {
        "status": "error",
        "message": "Invalid request body",
        "code": "INVALID_BODY",
        "requestId": "id",
        "errors": [
            {"index": 0, "field": "name", "message": "is required"},
            {"index": 2, "field": "", "message": "must be an object"},
        ],
    }


@pytest.mark.parametrize("fault", QueryFault)
def test_query_fault_is_its_own_code(fault: QueryFault) -> None:
    reply = refuse(InvalidQuery(fault, ' "x"'), Envelope.QUERY, "id")

    assert reply.status == 400
    assert msgspec.json.decode(reply.body) == {
        "success": False,
        "error": f'{fault.value} "x"',
        "code": fault.name,
        "requestId": "id",
    }


def test_scope_is_named() -> None:
    reply = refuse(MissingScope("read:data"), Envelope.QUERY, "id")

    assert msgspec.json.decode(reply.body) == {
        "success": False,
        "error": "API key missing read:data scope",
        "code": "MISSING_SCOPE",
        "requestId": "id",
    }


HEADERS: list[tuple[HeadraceError, Header]] = [
    (RateLimited(17), (b"retry-after", b"17")),
    (StoreUnavailable("away"), (b"retry-after", b"5")),
    (MethodNotAllowed(("GET", "HEAD")), (b"allow", b"GET, HEAD")),
    (RequestTimeout(), (b"connection", b"close")),
]


@pytest.mark.parametrize(("error", "header"), HEADERS, ids=[str(h[1][0]) for h in HEADERS])
def test_refusal_has_the_headers_of_its_status(error: HeadraceError, header: Header) -> None:
    assert refuse(error, Envelope.INGESTION, "id").headers == (JSON, header)
