"""Validates and normalizes names, origins and keys, without I/O.

Every function returns the value to store or raises `RejectedField` with one sentence.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace

from headrace.base.errors import RejectedField
from headrace.base.printable import is_printable
from headrace.model.data_retention import MAX_RETAIN_DAYS, RetentionChange
from headrace.model.tenancy import DEFAULT_PORTS, OrganizationId, Scope, Website, WebsiteChange

_LABEL = r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
_HOST_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>\[[^\]]*\]|[^:/?#@\[\]]*)(:(?P<port>[^/?#@]*))?"
    r"(?P<rest>.*)",
    re.DOTALL,
)


def normalize_name(what: str, name: str) -> str:
    """Return a name without surrounding whitespace; it must be printable and not empty."""
    name = normalize_text(f"the name of {what}", name, field="name")
    if not name:
        raise RejectedField("name", f"the name of {what} must not be empty")
    return name


def normalize_text(what: str, value: str, *, field: str = "domain") -> str:
    """Return a text without surrounding whitespace; it must be printable and may be empty."""
    value = value.strip()
    if not is_printable(value):
        raise RejectedField(
            field, f"{what} must be one line of printable text, and {value!r} is not"
        )
    return value


def normalize_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """Return each origin once, in order."""
    return tuple(dict.fromkeys(map(normalize_origin, origins)))


def changed_website(website: Website, change: WebsiteChange) -> Website:
    """Return a website with its new values. Whether the organization exists is not checked."""
    values = _set_values(change)
    for name, normalize in _NORMALIZED_FIELDS.items():
        if name in values:
            values[name] = normalize(values[name])
    _check_days(change.retention)
    values["retention"] = replace(website.retention, **_set_values(change.retention))
    return replace(website, **values)


def _check_days(change: RetentionChange) -> None:
    for days in _set_values(change).values():
        if days is not None and not 0 <= days <= MAX_RETAIN_DAYS:
            raise RejectedField(
                "retention",
                f"rows cannot be kept for {days} days: give 0 (for ever) to {MAX_RETAIN_DAYS}",
            )


def _set_values(change: Struct) -> dict[str, Any]:
    return {name: value for name, value in asdict(change).items() if value is not UNSET}


def normalize_origin(origin: str) -> str:
    """Return an origin as browsers send it: in lower case, without the scheme's default port.

    Accepts `scheme://host`, `scheme://host:port`, and `*.domain` for subdomains at any depth.
    """
    text = origin.strip().lower()
    if text.startswith("*."):
        return f"*.{_check_host(origin, text.removeprefix('*.'))}"
    match = _ORIGIN.fullmatch(text)
    if match is None:
        raise _invalid_origin(origin, "write scheme://host, scheme://host:port or *.domain")
    scheme, host, port, rest = match["scheme"], match["host"], match["port"], match["rest"]
    if rest:
        raise _invalid_origin(origin, f"it ends after host and port, and {rest!r} follows")
    if "*" in host:
        raise _invalid_origin(origin, "for all subdomains write *.domain, without a scheme")
    host = _check_bracketed(origin, host) if host.startswith("[") else _check_host(origin, host)
    return f"{scheme}://{host}{_check_port(origin, scheme, port)}"


def _check_host(origin: str, host: str) -> str:
    if not host.isascii():
        raise _invalid_origin(origin, "write the host as browsers send it, in ASCII (xn--…)")
    if not _HOST_NAME.fullmatch(host):
        raise _invalid_origin(origin, f"{host!r} is not a host name")
    return host


def _check_bracketed(origin: str, host: str) -> str:
    try:
        return f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
    except ValueError as error:
        raise _invalid_origin(origin, f"{host!r} is not an IPv6 address") from error


def _check_port(origin: str, scheme: str, port: str | None) -> str:
    if port is None:
        return ""
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise _invalid_origin(origin, f"{port!r} is not a port")
    return "" if DEFAULT_PORTS.get(scheme) == int(port) else f":{int(port)}"


def _invalid_origin(origin: str, reason: str) -> RejectedField:
    return RejectedField("origins", f"{origin!r} is not an origin: {reason}")


_NORMALIZED_FIELDS: Mapping[str, Callable[[Any], object]] = {
    "name": partial(normalize_name, "a website"),
    "domain": partial(normalize_text, "the domain of a website"),
    "origins": normalize_origins,
}


def check_key(
    *,
    scopes: frozenset[Scope],
    organization_id: OrganizationId,
    websites: Sequence[Website],
    home: Website | None,
) -> None:
    """Reject a key without a scope, with another organization's website or an unusable home.

    `websites` are those to which the key is limited; empty means all of its organization.
    """
    if not scopes:
        *others, last = (scope.value for scope in Scope)
        names = f"{', '.join(others)} or {last}"
        raise RejectedField("scopes", f"a key needs at least one scope: {names}")
    for website in websites:
        _check_organization("websites", website, organization_id)
    if home is None:
        return
    _check_organization("home", home, organization_id)
    if Scope.TRACK_EVENTS not in scopes:
        raise RejectedField(
            "home",
            "a home website receives events, and this key may not send any: "
            f"add the scope {Scope.TRACK_EVENTS.value}, or omit the home",
        )
    if websites and home not in websites:
        raise RejectedField(
            "home", f"the home website {home.id} is not one of those to which the key is limited"
        )


def _check_organization(field: str, website: Website, organization_id: OrganizationId) -> None:
    if website.organization_id is None:
        raise RejectedField(
            field,
            f"the organization of the website {website.id} was deleted, so no key can reach it",
        )
    if website.organization_id != organization_id:
        raise RejectedField(
            field,
            f"the website {website.id} belongs to the organization {website.organization_id}, "
            f"and the key would belong to {organization_id}",
        )
