"""The cookie of a session, and whether a request may use it.

A browser sends the cookie along with what other pages make it send. `SameSite=Strict` prevents that
for other sites; the rule here prevents it for other origins of the same site, too.
"""

from typing import Final

from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request
from headrace.http.responses import Header
from headrace.ports.sessions import SESSION_S

COOKIE: Final = "headrace_session"
_SECURE_COOKIE: Final = f"__Host-{COOKIE}"
"""Browsers accept this prefix only over TLS, from the host itself."""

_TLS: Final = "https"
_DEFAULT_PORTS: Final = {"http": ":80", _TLS: ":443"}


class SessionCookies:
    """Reads and writes the cookie; behind a trusted proxy that ends TLS, too."""

    def __init__(self, addresses: ClientAddresses) -> None:
        self._addresses = addresses

    def secret_of(self, request: Request) -> str | None:
        """Return the secret of a request's session, if the page itself sent the request."""
        return self._read(request) if self.is_same_origin(request) else None

    def is_same_origin(self, request: Request) -> bool:
        """Return whether a browser says that a page of this service sent the request."""
        fetch_site = request.headers.get(b"sec-fetch-site")
        if fetch_site is not None:
            return fetch_site == b"same-origin"
        origin = request.headers.get(b"origin")
        return origin is not None and origin.decode("latin-1").lower() == self._origin(request)

    def is_from_elsewhere(self, request: Request) -> bool:
        """Return whether a browser says that something else sent the request.

        Programs say nothing, which is neither.
        """
        says_something = b"sec-fetch-site" in request.headers or request.headers.get(b"origin")
        return bool(says_something) and not self.is_same_origin(request)

    def setting(self, request: Request, secret: str) -> Header:
        """Return the header that stores a session's secret in the browser."""
        return self._header(request, secret, SESSION_S)

    def clearing(self, request: Request) -> Header:
        """Return the header that removes the cookie."""
        return self._header(request, "", 0)

    def _header(self, request: Request, value: str, max_age_s: int) -> Header:
        is_secure = self._addresses.scheme(request) == _TLS
        name = _SECURE_COOKIE if is_secure else COOKIE
        text = f"{name}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict"
        return (b"set-cookie", (f"{text}; Secure" if is_secure else text).encode())

    def _read(self, request: Request) -> str | None:
        name = _SECURE_COOKIE if self._addresses.scheme(request) == _TLS else COOKIE
        for header in request.header_values(b"cookie"):
            for pair in header.decode("latin-1").split(";"):
                key, _, value = pair.strip().partition("=")
                if key == name and value:
                    return value
        return None

    def _origin(self, request: Request) -> str:
        scheme = self._addresses.scheme(request)
        host = self._addresses.host(request).lower().removesuffix(_DEFAULT_PORTS[scheme])
        return f"{scheme}://{host}"
