"""The files of the browser tracker, for pages of any website."""

from functools import cache, partial
from typing import Final

from headrace.http.endpoints import EndpointSpec
from headrace.http.reading.negotiation import choose_media_type
from headrace.http.request import Handler, Request
from headrace.http.responses import Header, Response
from headrace.http.tracker.files import IDENTITY, read_tracker_file

SCRIPT_TYPE: Final = "text/javascript; charset=utf-8"
_HEADERS: Final[tuple[Header, ...]] = (
    (b"access-control-allow-origin", b"*"),
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"cache-control", b"public, max-age=3600, stale-while-revalidate=86400"),
    (b"vary", b"Accept-Encoding"),
    (b"x-content-type-options", b"nosniff"),
)
"""A page that demands `crossorigin` or isolates itself may load the files, too."""


def tracker_handler(spec: EndpointSpec) -> Handler:
    """Return the handler of one file. It is read and compressed at the first request."""
    name = spec.path.removeprefix("/")
    read = cache(partial(read_tracker_file, name))
    is_script = name.endswith(".js")
    content_type = SCRIPT_TYPE if is_script else "application/json"
    links: tuple[Header, ...] = ((b"sourcemap", f"{name}.map".encode()),) if is_script else ()

    async def handle(request: Request) -> Response:
        file = read()
        accepted = request.headers.get(b"accept-encoding", b"").decode("latin-1")
        encoding = choose_media_type(accepted, tuple(file.bodies))
        # Bytes differ by encoding, so their tags do (RFC 9110, section 8.8.3).
        etag = f'"{file.etag}-{encoding}"'.encode()
        headers = (*_HEADERS, (b"etag", etag))
        if _has_tag(request.headers.get(b"if-none-match", b""), etag):
            return Response(304, b"", headers)
        encoded: tuple[Header, ...] = (
            () if encoding == IDENTITY else ((b"content-encoding", encoding.encode()),)
        )
        described = ((b"content-type", content_type.encode()), *links, *encoded)
        return Response(200, file.bodies[encoding], (*described, *headers))

    return handle


def _has_tag(if_none_match: bytes, etag: bytes) -> bool:
    tags = (tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b","))
    return any(tag in (etag, b"*") for tag in tags)
