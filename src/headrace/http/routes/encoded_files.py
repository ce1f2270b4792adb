"""Sends a file of the service in the content encoding that the caller prefers."""

from collections.abc import Mapping

from headrace.http.compression import IDENTITY
from headrace.http.reading.entity_tags import has_entity_tag
from headrace.http.reading.negotiation import choose_media_type
from headrace.http.request import Request
from headrace.http.responses import Header, Response


def respond_with_file(
    request: Request,
    bodies: Mapping[str, bytes],
    *,
    media_type: str,
    digest: str,
    headers: tuple[Header, ...],
) -> Response:
    """Return a file, whose bytes are given by content encoding, or that the caller has it already.

    `digest` changes with the file. Bytes differ by encoding, so their tags do (RFC 9110, section
    8.8.3).
    """
    accepted = request.headers.get(b"accept-encoding", b"").decode("latin-1")
    encoding = choose_media_type(accepted, tuple(bodies))
    etag = f'"{digest}-{encoding}"'.encode()
    common = (
        *headers,
        (b"vary", b"Accept-Encoding"),
        (b"x-content-type-options", b"nosniff"),
        (b"etag", etag),
    )
    if has_entity_tag(request, etag):
        return Response(304, b"", common)
    encoded: tuple[Header, ...] = (
        () if encoding == IDENTITY else ((b"content-encoding", encoding.encode()),)
    )
    described = ((b"content-type", media_type.encode()), *encoded)
    return Response(200, bodies[encoding], (*described, *common))
