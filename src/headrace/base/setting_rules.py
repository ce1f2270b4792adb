"""Rules for the values of settings that their types cannot express."""

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from typing import Any

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@*\s]+/?", re.IGNORECASE)
_TRACKER_PATH = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+\.js")


def check_setting(name: str, value: Any) -> None:  # noqa: ANN401 - a value of any setting
    """Raise `ValueError` with the reason where a value is not valid for the setting."""
    rule = _RULES.get(name)
    if rule is not None:
        rule(value)


def _check_networks(texts: tuple[str, ...]) -> None:
    for text in texts:
        try:
            ip_network(text, strict=False)
        except ValueError as error:
            raise ValueError(
                f"{text!r} is neither an address nor a network such as 10.0.0.0/8"
            ) from error


def _check_origins(texts: tuple[str, ...]) -> None:
    for text in texts:
        if not _ORIGIN.fullmatch(text):
            raise ValueError(
                f"{text!r} is not an origin such as https://example.com or http://localhost:3000"
            )


def _check_tracker_path(path: str) -> None:
    if not _TRACKER_PATH.fullmatch(path):
        raise ValueError(f"{path!r} is not a path such as /scripts/stats.js")
    if path.startswith(("/app/", "/v1/")) or path.endswith(
        ("/headrace-extras.js", "/headrace-details.js")
    ):
        raise ValueError(f"{path!r} belongs to another file or endpoint of the service")


def _check_data_dir(path: str) -> None:
    if not path:  # an unset variable of a script; Path("") is the current directory
        raise ValueError("expected the path of a directory")


def _check_host(host: str) -> None:
    if not host:  # which the system takes for all addresses, as 0.0.0.0
        raise ValueError("expected an address such as 127.0.0.1, or 0.0.0.0 for all")
    if host.startswith("[") and host.endswith("]"):  # as in a URL
        raise ValueError(f"an address of IPv6 has no brackets here, as in {host[1:-1]}")
    if not host.isprintable() or not _can_be_looked_up(host):
        raise ValueError(f"{host!r} is neither an address nor the name of a host")


def _can_be_looked_up(host: str) -> bool:
    try:
        host.encode("ascii" if host.isascii() else "idna")
    except UnicodeError:
        return False
    return True


_RULES: Mapping[str, Callable[[Any], None]] = {
    "data_dir": _check_data_dir,
    "host": _check_host,
    "tracker_path": _check_tracker_path,
    "trusted_proxies": _check_networks,
    "query_origins": _check_origins,
}
"""Rules that types cannot express; each raises `ValueError` with the reason."""
