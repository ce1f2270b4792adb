from collections.abc import Iterator

import msgspec
import pytest

from headrace.base.errors import (
    ClientError,
    FieldError,
    HeadraceError,
    InvalidBody,
    InvalidQuery,
    MethodNotAllowed,
    MissingScope,
    OperatorError,
    QueryErrorCode,
    RateLimited,
    RequestTimeout,
    StoreUnavailable,
    Unavailable,
    UnsupportedMediaType,
)
from headrace.http.endpoints import ENDPOINTS, PAGE_ENDPOINTS, UNKNOWN
from headrace.http.responses import (
    ERROR_RESPONSES,
    INTERNAL,
    Envelope,
    Header,
    error_response,
    find_error_response,
)

JSON: Header = (b"content-type", b"application/json")


def family(root: type[HeadraceError]) -> Iterator[type[HeadraceError]]:
    """Return the subclasses of an error in its own module; adapters may define narrower ones."""
    for child in root.__subclasses__():
        if child.__module__ == root.__module__:
            yield child
            yield from family(child)


def test_error_table_is_complete() -> None:
    assert set(ERROR_RESPONSES) == {*family(ClientError), Unavailable, *family(Unavailable)}


def test_every_error_response_belongs_to_an_endpoint() -> None:
    given = {error for spec in (*ENDPOINTS, *PAGE_ENDPOINTS, UNKNOWN) for error in spec.errors}

    assert set(ERROR_RESPONSES) - given == {Unavailable}


@pytest.mark.parametrize(
    "error", [ValueError("x"), OperatorError("x"), HeadraceError("x"), KeyboardInterrupt()]
)
def test_error_outside_the_table_is_internal(error: BaseException) -> None:
    assert find_error_response(error) is INTERNAL


def test_field_errors_are_listed_in_the_ingestion_envelope() -> None:
    error = InvalidBody(
        (FieldError(0, "name", "is required"), FieldError(2, "", "must be an object"))
    )

    response = error_response(error, Envelope.INGESTION, "id")

    assert (response.status, response.headers) == (400, (JSON,))
    assert msgspec.json.decode(response.body) == {
        "status": "error",
        "message": "Invalid request body",
        "code": "INVALID_BODY",
        "requestId": "id",
        "errors": [
            {"index": 0, "field": "name", "message": "is required"},
            {"index": 2, "field": "", "message": "must be an object"},
        ],
    }


@pytest.mark.parametrize("error_code", QueryErrorCode)
def test_query_error_has_its_own_code(error_code: QueryErrorCode) -> None:
    response = error_response(InvalidQuery(error_code, ' "x"'), Envelope.QUERY, "id")

    assert response.status == 400
    assert msgspec.json.decode(response.body) == {
        "success": False,
        "error": f'{error_code.value} "x"',
        "code": error_code.name,
        "requestId": "id",
    }


def test_scope_is_named() -> None:
    response = error_response(MissingScope("read:data"), Envelope.QUERY, "id")

    assert msgspec.json.decode(response.body) == {
        "success": False,
        "error": "API key missing read:data scope",
        "code": "MISSING_SCOPE",
        "requestId": "id",
    }


def test_rejected_media_type_is_quoted_up_to_128_characters() -> None:
    response = error_response(UnsupportedMediaType("x" * 5_000), Envelope.INGESTION, "id")

    assert msgspec.json.decode(response.body) == {
        "status": "error",
        "message": f'Unsupported media type "{"x" * 128}": send application/json',
        "code": "UNSUPPORTED_MEDIA_TYPE",
        "requestId": "id",
    }


HEADERS: list[tuple[HeadraceError, Header]] = [
    (RateLimited(17), (b"retry-after", b"17")),
    (StoreUnavailable("away"), (b"retry-after", b"5")),
    (MethodNotAllowed(("GET", "HEAD")), (b"allow", b"GET, HEAD")),
    (RequestTimeout(), (b"connection", b"close")),
]


@pytest.mark.parametrize(("error", "header"), HEADERS, ids=[str(h[1][0]) for h in HEADERS])
def test_error_response_has_the_headers_of_its_status(error: HeadraceError, header: Header) -> None:
    assert error_response(error, Envelope.INGESTION, "id").headers == (JSON, header)
