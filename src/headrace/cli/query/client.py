"""Sends a query to a running service over HTTP. Error responses become `OperatorError`."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http.client import BadStatusLine, HTTPException
from ipaddress import ip_address
from ssl import SSLCertVerificationError, SSLError
from typing import Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

import msgspec
from msgspec import Struct

from headrace import __version__
from headrace.base.errors import OperatorError, system_reason

TIMEOUT_S: Final = 120
"""Longer than any sensible `query_timeout_s`, the deadline of the service."""

_URL = re.compile(r"https?://[!-~]+")
_KEY = re.compile(r"[!-~]+")
_REASONS_OF_PLAIN_PORTS: Final = frozenset(
    {"HTTP_REQUEST", "RECORD_LAYER_FAILURE", "WRONG_VERSION_NUMBER"}
)
"""What OpenSSL says, by its version, of a response that is not TLS."""

_TRY_TLS: Final = "if the server uses TLS, its address begins with https://"
"""Servers with TLS answer a plain request with 400, with an alert, or by closing the connection."""

_OF_WRONG_PATHS: Final = frozenset({404, 405})
"""What servers answer below a path that is not one of theirs, or is that of a page."""

CUSTOM_PATH: Final = "/v1/query/custom"

Body = TypeVar("Body")


class QueryTarget(Struct, frozen=True):
    """The service, the website and the API key of a query. A public website needs no key."""

    url: str
    website: str
    key: str | None


class QueryResponse(Struct, frozen=True):
    """A response with status 200. `is_truncated` is the header of formats without metadata.

    `hint` says what address to write, if the response turns out to be one of another server.
    """

    body: bytes
    is_truncated: bool
    hint: str = ""


class _ErrorBody(Struct, frozen=True):
    error: str
    code: str = ""


class Call(Struct, frozen=True):
    """What is sent: a body to the path of a query, or parameters where there is no body.

    Without a `method` it is POST with a body, and GET where there is none. `if_not_found` says what
    the path names, where it may name nothing.
    """

    body: bytes | None
    path: str = CUSTOM_PATH
    parameters: Mapping[str, str] = {}
    method: str | None = None
    if_not_found: str | None = None


def send_query(target: QueryTarget, call: Call, media_type: str) -> QueryResponse:
    """Send a query and return the response in a media type. Blocking.

    Raises `OperatorError` with the error message of the service, or why there is no response.
    """
    opener = _build_opener(target.url)
    request = _build_request(target, call, media_type)
    try:
        return _exchange(opener, request, target, call)
    except (OSError, HTTPException) as error:
        reason = _connection_failure(error, target.url)
        raise OperatorError(f"cannot query {target.url}: {reason}") from error


def _exchange(
    opener: OpenerDirector, request: Request, target: QueryTarget, call: Call
) -> QueryResponse:
    """Send a request and read the whole response. Raises `OperatorError` for one of an error."""
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            return QueryResponse(
                response.read(),
                is_truncated=response.headers["X-Truncated"] == "true",
                hint=_address_hint(target.url),
            )
    except HTTPError as error:
        with error:
            raise _to_operator_error(error, target, call) from None


def decode_response(response: QueryResponse, body: type[Body]) -> Body:
    """Return the body of a response. Raises `OperatorError` for one of another server."""
    try:
        return msgspec.json.decode(response.body, type=body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise OperatorError(
            f"the response is not one of a Headrace service{response.hint}"
        ) from None


def _build_request(target: QueryTarget, call: Call, media_type: str) -> Request:
    headers = {
        "Accept": media_type,
        **({} if call.body is None else {"Content-Type": "application/json"}),
        "User-Agent": f"headrace/{__version__}",
    }
    if target.key is not None:
        if not _KEY.fullmatch(target.key):
            raise OperatorError("the key contains characters that API keys do not have")
        headers["Authorization"] = f"Bearer {target.key}"
    parameters = urlencode(
        {"website_id": target.website, **call.parameters}, quote_via=quote, errors="replace"
    )
    url = f"{target.url.rstrip('/')}{call.path}?{parameters}"
    method = call.method or ("GET" if call.body is None else "POST")
    return Request(url, call.body, headers, method=method)  # noqa: S310 - the scheme is HTTP


def _build_opener(url: str) -> OpenerDirector:
    """Use the proxies of the environment, except for a loopback address.

    Redirects are not followed: they would send the key to another host, without the body.
    """
    opener = OpenerDirector()
    opener.add_handler(ProxyHandler({}) if _is_loopback(url) else ProxyHandler())
    for handler in (HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
        opener.add_handler(handler())
    return opener


def _is_loopback(url: str) -> bool:
    host = _host(url)
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_plain(url: str) -> bool:
    return url.startswith("http://")


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")  # as it is looked up
    except ValueError:
        host = None
    if host is None or not _URL.fullmatch(url):
        raise OperatorError(f"{url!r} is not an address such as http://127.0.0.1:8080")
    return host


def _to_operator_error(error: HTTPError, target: QueryTarget, call: Call) -> OperatorError:
    refusal, retry_time = _read_refusal(error.read()), _retry_time(error.headers["Retry-After"])
    if refusal is None:
        location = error.headers["Location"]
        hint = f" and points to {location}" if location else ""
        other = f"; {_TRY_TLS}" if error.code == 400 and _is_plain(target.url) else ""
        if error.code in _OF_WRONG_PATHS:
            other = _address_hint(target.url)
        return OperatorError(
            f"{target.url} answered {error.code}{hint}; it is not the address of a Headrace service"
            f"{other}"
        )
    if error.code == 401 and target.key is None:
        return OperatorError(f"{refusal.error}: no key was given; use --key or HEADRACE_API_KEY")
    if refusal.code == "NOT_FOUND" and call.if_not_found is not None:
        return OperatorError(call.if_not_found)
    if retry_time is not None:
        return OperatorError(f"{refusal.error}; it works again {retry_time}")
    return OperatorError(refusal.error)


def _address_hint(url: str) -> str:
    """Return the end of a sentence for an address with a path, such as that of the page."""
    scheme, host, path, *_ = urlsplit(url)
    if not path.strip("/"):
        return ""
    return f": write {scheme}://{host} unless a proxy serves Headrace below {path}"


def _retry_time(retry_after: str | None) -> str | None:
    """Return in words when to try again: the service sends seconds, a proxy may send a date."""
    text = (retry_after or "").strip()
    if text.isdecimal():
        return f"in {text} s"
    try:
        parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the latter for a year of twenty digits
        return None
    return f"on {text}"


def _read_refusal(body: bytes) -> _ErrorBody | None:
    try:
        return msgspec.json.decode(body, type=_ErrorBody)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _connection_failure(error: OSError | HTTPException, url: str) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no response within {TIMEOUT_S} s"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused; is the service running?"
    if isinstance(cause, ConnectionResetError | BadStatusLine) and _is_plain(url):
        return f"it ended the connection; {_TRY_TLS}"
    if isinstance(cause, SSLError):
        return _tls_failure(cause)
    return system_reason(cause) if isinstance(cause, OSError) else str(cause)


def _tls_failure(error: SSLError) -> str:
    if isinstance(error, SSLCertVerificationError):
        return (
            f"its certificate is not accepted ({error.verify_message}); SSL_CERT_FILE can name a "
            "file of trusted certificates"
        )
    if error.reason in _REASONS_OF_PLAIN_PORTS:
        return (
            "it does not use TLS; if no proxy with TLS is in front of the service, its address "
            "begins with http://"
        )
    return f"no connection with TLS ({(error.reason or str(error)).lower().replace('_', ' ')})"
