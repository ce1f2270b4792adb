"""The responses to what is no request, after which the connection closes."""

import secrets
from typing import Final

from headrace.base.errors import ClientError
from headrace.http.responses import Envelope, error_response
from headrace.http.server.response_bytes import encode_response

_MESSAGE: Final = b"Invalid HTTP request received."
BAD_REQUEST: Final = encode_response(
    400,
    (
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(_MESSAGE)),
        (b"connection", b"close"),
    ),
    _MESSAGE,
)
"""The response to malformed HTTP."""


def encode_head_error(error: ClientError) -> bytes:
    """Return the response to a head over its limits."""
    response = error_response(error, Envelope.INGESTION, secrets.token_hex(8))
    headers = (
        *(header for header in response.headers if header[0] != b"connection"),
        (b"content-length", b"%d" % len(response.body)),
        (b"connection", b"close"),
    )
    return encode_response(response.status, headers, response.body)
