"""The routes of the API description: /openapi.json for programs, /docs for people."""

from collections.abc import Callable
from functools import cache

import msgspec

from headrace.base.settings import Settings
from headrace.http.apidocs.openapi import make_document
from headrace.http.apidocs.render_html import content_security_policy, write_page
from headrace.http.request import Handler, Request
from headrace.http.responses import JSON_HEADER, Header, Response

_HTML_HEADER: Header = (b"content-type", b"text/html; charset=utf-8")
_COMMON_HEADERS: tuple[Header, ...] = (
    (b"cache-control", b"no-cache"),
    (b"x-content-type-options", b"nosniff"),
)


def openapi_handler(settings: Settings) -> Handler:
    """Return the handler of /openapi.json."""
    return _document_handler(
        lambda: msgspec.json.encode(make_document(settings)), (JSON_HEADER, *_COMMON_HEADERS)
    )


def docs_handler(settings: Settings) -> Handler:
    """Return the handler of /docs."""
    headers = (
        _HTML_HEADER,
        (b"content-security-policy", content_security_policy().encode()),
        (b"referrer-policy", b"no-referrer"),
        *_COMMON_HEADERS,
    )
    return _document_handler(lambda: write_page(make_document(settings)).encode(), headers)


def _document_handler(make_body: Callable[[], bytes], headers: tuple[Header, ...]) -> Handler:
    """Return a handler that renders its body at the first request: most workers never need it."""
    body = cache(make_body)

    async def handle(_request: Request) -> Response:
        return Response(200, body(), headers)

    return handle
