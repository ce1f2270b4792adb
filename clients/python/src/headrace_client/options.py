"""The arguments of a client, and what it says about itself."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Literal, NamedTuple, TypedDict

import httpx

from headrace_client.delivery.outbox import RefusedItem

_MAX_PORT = 65535
_CREDENTIALS = re.compile(r"^(\w+://)?.*@", re.DOTALL)  # a password may have any character
_QUERY = re.compile(r"([?#]).*", re.DOTALL)


class ClientOptions(TypedDict, total=False):
    """Optional arguments of a client; `Headrace` describes them."""

    website_id: str | None
    synchronous: Literal["normal", "full"]
    max_outbox_bytes: int
    when_full: Literal["raise", "drop"]
    max_batch_items: int
    linger_s: float
    busy_timeout_s: float
    on_refused: Callable[[RefusedItem], object] | None
    make_http_client: Callable[[], httpx.Client] | None


class Stats(NamedTuple):
    """What became of the items. Totals are of all processes that use the outbox.

    `pending` wait to be sent, `refused` wait for `requeue_refused` or `delete_refused`. Refused
    items beyond 10,000 were discarded. `dropped` did not fit in the outbox of this process's
    client, `failures` requests in a row failed, the last one for the reason `last_error`.
    """

    pending: int
    refused: int
    stored_total: int
    refused_total: int
    discarded_total: int
    dropped: int
    failures: int
    last_error: str


def check_arguments(url: str, key: str | None, website_id: str | None, synchronous: str) -> None:
    """Raise `ValueError` for arguments with which no item could be sent."""
    _check_address(url, key)
    if key is not None and not key:
        raise ValueError("the key is empty")
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("the key has blanks or other characters that no key has")
    if key is None and website_id is None:
        raise ValueError("a key or a website_id is required")
    if synchronous not in {"normal", "full"}:
        raise ValueError(f'synchronous is {synchronous!r}: it can be "normal" or "full"')


def split_address(url: str, key: str | None) -> tuple[str, str | None]:
    """Return the address without its user name and password, and the field Authorization.

    Addresses are in logs, such as those of httpx.
    """
    address = httpx.URL(url)
    if not address.userinfo:
        return url, None if key is None else f"Bearer {key}"
    credentials = f"{address.username}:{address.password}".encode()
    return str(address.copy_with(userinfo=b"")), f"Basic {b64encode(credentials).decode()}"


def _check_address(url: str, key: str | None) -> None:
    reason = _reason_against(url)
    if reason:
        raise ValueError(f"{_without_secrets(url)!r} is no address of a service: {reason}")
    if httpx.URL(url).userinfo and key is not None:
        raise ValueError("the address has a user name or password, and there is a key, too")


def _reason_against(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")):
        return "it begins with http:// or https://"
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        return "it is no URL" if "@" in url else str(error)  # which may have a part of a password
    if not address.host or (address.port or 0) > _MAX_PORT:
        return "it has no host, or no valid port"
    return "it has a query or a fragment" if address.query or address.fragment else ""


def _without_secrets(url: str) -> str:
    """Return what an error may show of an address: no user name, password, query or fragment."""
    return _QUERY.sub(r"\1***", _CREDENTIALS.sub(r"\1***@", url))
