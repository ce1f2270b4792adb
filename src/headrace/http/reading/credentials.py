"""Reads credentials from headers and query string, without checking them."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote_to_bytes

from headrace.http.responses import Header
from headrace.model.tenancy import Credentials

Headers = Mapping[bytes, bytes]


def read_credentials(
    query_string: bytes, headers: Headers, fields: Sequence[Header]
) -> Credentials:
    """Return the credentials of a request to an ingestion endpoint; see `read_api_key`."""
    origin = headers.get(b"origin")
    return Credentials(
        api_key=read_api_key(headers, fields),
        website_id=read_website_id(query_string, headers),
        origin=origin.decode("latin-1") if origin else None,
    )


def read_api_key(headers: Headers, fields: Sequence[Header]) -> str | None:
    """Return the API key of a request: None for none, "" for an empty one.

    `Authorization: Bearer KEY` takes precedence over `x-api-key`. Another scheme counts as no key.
    `fields` are all header fields as they were sent. Two `Authorization` or two `x-api-key` fields
    are "": a proxy and this service could otherwise take different ones for the credential.
    """
    if len(fields) > len(headers) and _is_key_repeated(fields):
        return ""
    authorization = headers.get(b"authorization")
    if authorization is not None:
        scheme, _, key = authorization.replace(b"\t", b" ").partition(b" ")
        if scheme.lower() == b"bearer":
            return key.strip().decode("latin-1")
    key_header = headers.get(b"x-api-key")
    return None if key_header is None else key_header.strip().decode("latin-1")


def _is_key_repeated(fields: Sequence[Header]) -> bool:
    names = [name for name, _ in fields]
    return names.count(b"authorization") > 1 or names.count(b"x-api-key") > 1


def read_website_id(query_string: bytes, headers: Headers) -> str | None:
    """Return the first website identifier that is not empty: query string, then header."""
    if query_string:
        identifier = read_parameter(query_string, b"website_id")
        identifier = identifier or read_parameter(query_string, b"client_id")
        if identifier:
            return identifier
    header = headers.get(b"databuddy-client-id")
    return header.decode("latin-1") if header else None


def read_parameter(query_string: bytes, name: bytes) -> str | None:
    """Return the first value of a query parameter that is not empty."""
    for pair in query_string.split(b"&"):
        key, _, value = pair.partition(b"=")
        if value and _decode_form(key) == name:
            return _decode_form(value).decode(errors="replace")
    return None


def _decode_form(text: bytes) -> bytes:
    if b"%" not in text and b"+" not in text:
        return text
    return unquote_to_bytes(text.replace(b"+", b" "))
