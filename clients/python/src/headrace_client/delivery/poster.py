"""One request with items, and what its response means for them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import httpx
import msgspec

from headrace_client.delivery.backoff import retry_after_s
from headrace_client.delivery.in_flight import InFlight
from headrace_client.delivery.session import HttpSession, SessionUnavailable
from headrace_client.items import Endpoint

_GZIP_FROM_BYTES = 1024
_GZIP_LEVEL = 1  # a third of the time of level 6, for 15 % more bytes of typical items
_FINAL = frozenset({400, 403, 404, 415})
_TOO_LARGE = 413
_UNAVAILABLE = 503
_MAX_RESPONSE_BYTES = 1024 * 1024  # an error document of the service has a few KiB
_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
)


class Stored(NamedTuple):
    """The service has stored all items."""


class Refused(NamedTuple):
    """The service refused the request for good, because of the items at these indexes.

    `messages` says what is wrong with each. Without any the service did not say which.
    """

    status: int
    code: str
    message: str
    messages: Mapping[int, str]


class TooLarge(NamedTuple):
    """The request was too large, so nothing of it was stored."""

    message: str


class Failed(NamedTuple):
    """Try again. `is_unknown` says that the items may have been stored."""

    reason: str
    is_unknown: bool
    retry_after_s: float | None = None


Outcome = Stored | Refused | TooLarge | Failed


class _FieldError(msgspec.Struct):
    index: int
    field: str = ""
    message: str = ""


class _Reply(msgspec.Struct):
    """The bodies of responses; one that is not from the service has no status."""

    status: str = ""
    message: str = ""
    code: str = ""
    errors: list[_FieldError] = []


_DECODER = msgspec.json.Decoder(_Reply)


class ItemPoster:
    """Posts items. Belongs to one thread."""

    def __init__(
        self,
        url: str,
        authorization: str | None,
        *,
        make_http_client: Callable[[], httpx.Client],
    ) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json"}
        if authorization is not None:
            self._headers["Authorization"] = authorization
        self._make_http_client = make_http_client
        self._session: HttpSession | None = None

    def post(self, in_flight: InFlight) -> Outcome:
        """Send items and return what became of them. Raises nothing."""
        body, headers = self._encode(in_flight)
        url = self._url + in_flight.endpoint.value
        try:
            if self._session is None:
                self._session = HttpSession(self._make_http_client)
            response = self._session.post(url, body, headers=headers, max_bytes=_MAX_RESPONSE_BYTES)
        except SessionUnavailable as error:
            return Failed(str(error), is_unknown=False)
        except _NEVER_SENT as error:
            return Failed(_describe(error), is_unknown=False)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return Failed(_describe(error), is_unknown=True)
        return outcome_of(response.head, response.body, len(in_flight.ids))

    def _encode(self, in_flight: InFlight) -> tuple[bytes, dict[str, str]]:
        body = b",".join(in_flight.bodies)
        if in_flight.endpoint is not Endpoint.IDENTIFY:  # takes one object and no array
            body = b"[" + body + b"]"
        if len(body) < _GZIP_FROM_BYTES:
            return body, self._headers
        return gzip.compress(body, _GZIP_LEVEL), {**self._headers, "Content-Encoding": "gzip"}

    def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def forget(self) -> None:
        """Leave the connections to the process that this one was forked from."""
        self._session = None


def outcome_of(response: httpx.Response, content: bytes, count: int) -> Outcome:
    """Return what a response with a body means for the `count` items of its request."""
    status = response.status_code
    reply = _decode(content)
    if response.is_success and reply.status == "success":
        return Stored()
    reason = f"{status} {reply.message or response.reason_phrase}".strip()
    if status == _TOO_LARGE:
        return TooLarge(reply.message or response.reason_phrase)
    # A proxy answers 404 for a service that is being replaced, 400 where it expects TLS, and a
    # firewall 403 for what it takes for an attack; only the service's own is final.
    if status in _FINAL and reply.status == "error" and reply.code:
        message = _join(reply.errors) or reply.message or reason
        return Refused(status, reply.code, message, _messages(reply.errors, count))
    if response.is_success:
        reason = f"{reason}, but the response is not from the service"
    # The service stores nothing of what it answers with 503; a proxy may have passed it on.
    stores_nothing = status == _UNAVAILABLE and reply.status == "error"
    is_unknown = not (stores_nothing or response.is_client_error)
    return Failed(reason, is_unknown, retry_after_s(response.headers.get("Retry-After")))


def _messages(errors: Sequence[_FieldError], count: int) -> dict[int, str]:
    """Return what is wrong with each item that has an error, in the order of the items."""
    indexes = sorted({one.index for one in errors if 0 <= one.index < count})
    return {index: _join([one for one in errors if one.index == index]) for index in indexes}


def _join(errors: Sequence[_FieldError]) -> str:
    return "; ".join(f"{one.field}: {one.message}" for one in errors[:3])


def _decode(content: bytes) -> _Reply:
    try:
        return _DECODER.decode(content)
    except msgspec.MsgspecError:
        return _Reply()


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
