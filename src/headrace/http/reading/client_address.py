"""The client address of a request, behind the trusted proxies of the settings."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from headrace.base.errors import OperatorError
from headrace.http.request import Request

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class ClientAddresses:
    """Finds client addresses; only trusted proxies may set forwarding headers."""

    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._trusted = tuple(_parse_network(proxy) for proxy in trusted_proxies)

    def find(self, request: Request) -> str:
        """Return the client address, or "" if it is unknown."""
        return self.find_from(request.scope.get("client"), request.scope["headers"])

    def find_from(
        self, client: tuple[str, int] | None, headers: Sequence[tuple[bytes, bytes]]
    ) -> str:
        """Return the client address for the peer of a connection and the headers of a request.

        The search follows the chain of addresses from the peer outwards while each is a trusted
        proxy, since only an address that a trusted proxy has added is reliable.
        """
        peer = normalize_address(client[0]) if client else ""
        if not self._trusted or not self._is_trusted(peer):
            return peer
        nearest = peer
        for text in reversed(_forwarded_chain(headers)):
            nearest = normalize_address(_without_port(text))
            if not self._is_trusted(nearest):
                break
        return nearest

    def scheme(self, request: Request) -> str:
        """Return the scheme under which the client sent the request: http or https."""
        if self._is_from_proxy(request):
            forwarded = request.headers.get(b"x-forwarded-proto", b"").split(b",")[0]
            if (scheme := forwarded.strip().lower().decode("latin-1")) in ("http", "https"):
                return scheme
        return "https" if request.scope.get("scheme") == "https" else "http"

    def host(self, request: Request) -> str:
        """Return the host, with its port if it has one, to which the client sent the request."""
        if self._is_from_proxy(request):
            forwarded = request.headers.get(b"x-forwarded-host", b"").split(b",")[0]
            if host := forwarded.strip().decode("latin-1"):
                return host
        return request.headers.get(b"host", b"").decode("latin-1")

    def _is_from_proxy(self, request: Request) -> bool:
        client = request.scope.get("client")
        return bool(self._trusted) and self._is_trusted(
            normalize_address(client[0]) if client else ""
        )

    def _is_trusted(self, address: str) -> bool:
        return address != "" and any(ip_address(address) in proxy for proxy in self._trusted)


@lru_cache(maxsize=4096)
def normalize_address(text: str) -> str:
    """Return an address in its canonical form, or "" for invalid text.

    An IPv4-mapped IPv6 address becomes IPv4; the result has no zone (`%eth0`).
    """
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _parse_network(proxy: str) -> Network:
    try:
        return ip_network(proxy, strict=False)
    except ValueError as error:
        raise OperatorError(
            f"trusted_proxies: {proxy!r} is neither an address nor a network such as 10.0.0.0/8"
        ) from error


def _forwarded_chain(headers: Sequence[tuple[bytes, bytes]]) -> list[str]:
    """Return the addresses of the forwarding headers, the farthest first.

    Only the first header that is present counts: a proxy sets one of them and may forward the
    others as the client sent them.
    """
    for name, parse in _FORWARDING_HEADERS:
        values = [value for key, value in headers if key == name]
        if values:
            return list(parse(b",".join(values).decode("latin-1")))
    return []


def _split_list(value: str) -> Iterable[str]:
    return (part.strip() for part in value.split(",") if part.strip())


def _forwarded_for(value: str) -> Iterable[str]:
    """Return the `for` parameters of a Forwarded header; "" for an element without one."""
    for element in _split_list(value):
        pairs = (pair.partition("=") for pair in element.split(";"))
        named = {key.strip().lower(): text.strip().strip('"') for key, _, text in pairs}
        yield named.get("for", "")


_FORWARDING_HEADERS: tuple[tuple[bytes, Callable[[str], Iterable[str]]], ...] = (
    (b"x-forwarded-for", _split_list),
    (b"forwarded", _forwarded_for),
    (b"x-real-ip", _split_list),
)


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, colon, _ = text.partition(":")
    is_bare_ipv6 = text.count(":") > 1
    return host if colon and not is_bare_ipv6 else text
