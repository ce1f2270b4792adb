"""The arguments of a client, and what it says about itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypedDict

import httpx

from headrace_client.delivery.outbox import RefusedItem

_MAX_PORT = 65535


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
    if not url.lower().startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no address of a service: it begins with http:// or https://")
    _check_address(url, key)
    if key is not None and not key:
        raise ValueError("the key is empty")
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("the key has blanks or other characters that no key has")
    if key is None and website_id is None:
        raise ValueError("a key or a website_id is required")
    if synchronous not in {"normal", "full"}:
        raise ValueError(f'synchronous is {synchronous!r}: it can be "normal" or "full"')


def _check_address(url: str, key: str | None) -> None:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is no address of a service: {error}") from error
    if not address.host or (address.port or 0) > _MAX_PORT:
        raise ValueError(f"{url!r} is no address of a service: it has no host, or no valid port")
    if address.query or address.fragment:
        raise ValueError(f"{url!r} is no address of a service: it has a query or a fragment")
    if address.userinfo and key is not None:  # httpx would send them in place of the key
        raise ValueError("the address has a user name or password, and there is a key, too")
