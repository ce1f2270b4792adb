"""What the middleware for ASGI and WSGI share: the request, its visitor, and what is reported."""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.cookies import SimpleCookie

_logger = logging.getLogger("headrace_client")

_MAX_TEXT = 2048  # the service refuses longer ones
_MAX_ID = 256
_MAX_PROFILE_ID = 128
_PAGE_TYPE = "text/html"
SERVER_ERROR = 500
"""What a server answers where an exception leaves the application before the response begins."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Request:
    """One request. `path` is percent-encoded and without query, header names are in small letters.

    `address` is that of the connection, or "".
    """

    method: str
    path: str
    headers: Mapping[str, str]
    address: str
    began_s: float = field(default_factory=time.monotonic)

    def cookie(self, name: str) -> str | None:
        """Return the value of a cookie, if the request has it."""
        pairs = [one.partition("=") for one in self.headers.get("cookie", "").split(";")]
        values = [value.strip() for key, equals, value in pairs if equals and key.strip() == name]
        return _unquote(values[-1]) if values else None


Visitor = Callable[[Request], Mapping[str, str | None]]


@dataclass(frozen=True)
class RequestOptions:
    """What the middleware reports, and of what requests.

    `page_views`: an event `screen_view` for a GET that is answered with HTML and a status below
    300. `requests`: an event `http_request` with `method`, `status` and `duration_ms` until the
    response began, for each request. `errors`: exceptions that leave the application. `is_reported`
    leaves requests out. `visitor` returns fields such as `anonymous_id` and `session_id`.
    `trusted_proxies` are addresses or networks whose X-Forwarded-For is believed.
    """

    page_views: bool = True
    requests: bool = False
    errors: bool = True
    is_reported: Callable[[Request], bool] | None = None
    visitor: Visitor | None = None
    trusted_proxies: Sequence[str] = ()

    def networks(self) -> tuple[Network, ...]:
        """Return the trusted proxies. Raises `ValueError` for one that is no address."""
        return tuple(ipaddress.ip_network(one) for one in self.trusted_proxies)


Event = tuple[str, dict[str, object]]
"""A name and properties."""


class RequestReporter:
    """Decides what is reported of a request."""

    def __init__(self, options: RequestOptions) -> None:
        self.options = options
        self._trusted = options.networks()

    def is_reported(self, request: Request) -> bool:
        """Return whether anything may be reported of a request. Raises nothing."""
        if self.options.is_reported is None:
            return True
        try:
            return self.options.is_reported(request)
        except Exception:
            _logger.exception("a request is not reported: is_reported failed")
            return False

    def fields(self, request: Request) -> dict[str, str | None]:
        """Return the fields that all items of a request get."""
        return {
            "path": request.path[:_MAX_TEXT],
            "ip": self._client_address(request),
            "user_agent": request.headers.get("user-agent", "")[:_MAX_TEXT] or None,
            **self._visitor(request),
        }

    def _visitor(self, request: Request) -> Mapping[str, str]:
        if self.options.visitor is None:
            return {}
        try:
            ids = self.options.visitor(request)
            return {name: one for name, one in ids.items() if one and len(one) <= _max_id(name)}
        except Exception:  # a page is not to fail for what is reported of it
            _logger.exception("a request is reported without its visitor: visitor failed")
            return {}

    def events(self, request: Request, status: int, content_type: str) -> list[Event]:
        """Return the events of a request whose response has begun."""
        found: list[Event] = []
        is_page = content_type.strip().lower().startswith(_PAGE_TYPE) and status in range(200, 300)
        if self.options.page_views and is_page and request.method == "GET":
            referrer = request.headers.get("referer", "")[:_MAX_TEXT]
            found.append(("screen_view", {"referrer": referrer} if referrer else {}))
        if self.options.requests:
            duration_ms = round((time.monotonic() - request.began_s) * 1000, 3)
            properties = {"method": request.method, "status": status, "duration_ms": duration_ms}
            found.append(("http_request", {**properties}))
        return found

    def _client_address(self, request: Request) -> str | None:
        """Return the last address of the chain that is no trusted proxy."""
        chain = request.headers.get("x-forwarded-for", "").split(",")
        address = _address(request.address)
        while address is not None and self._is_trusted(address) and chain:
            address = _address(chain.pop()) or address
        return None if address is None else str(address)

    def _is_trusted(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        return any(address in network for network in self._trusted)


def _max_id(field: str) -> int:
    return _MAX_PROFILE_ID if field == "profile_id" else _MAX_ID


def _unquote(value: str) -> str:
    """Return the value of one cookie. `SimpleCookie` takes nothing of a header with an odd one."""
    morsel = SimpleCookie(f"x={value}").get("x") if value.startswith('"') else None
    return value if morsel is None else morsel.value


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip().partition("%")[0])  # without an IPv6 zone
    except ValueError:
        return None
