"""Derives visitors from addresses and User-Agents, which are neither stored nor logged."""

import asyncio
import functools
import hashlib
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from headrace.ingest.receive.decoding.decode import WireItem
from headrace.ingest.receive.decoding.validation_errors import Check
from headrace.ingest.receive.visitor_salts import DailySalts
from headrace.model.catalog import MAX_URL_LENGTH
from headrace.model.log_records import UNKNOWN_VISITOR, Visitor
from headrace.ports.enrichment import GeoLocator, UserAgentParser

MAX_USER_AGENT_LENGTH = MAX_URL_LENGTH
"""Code points. A longer one is an error where it is a field, and is cut where it is a header."""

VISITORS_AT_ONCE = 16
"""Visitors that are looked up in one turn of the event loop: 0.1 ms each, 2 ms at worst."""

_VISITOR_CACHE_SIZE = 4096
_VISITOR_ID_BYTES = 16

ADDRESS_ERROR = "must be a valid IP address"
USER_AGENT_ERROR = f"must be text of at most {MAX_USER_AGENT_LENGTH} characters"


class Enrichment(Struct, frozen=True):
    """The derived values of a batch's items; see `AuthorizedBatch`.

    `visitor` is the request's. `visitors` has each item's own visitor, None for the request's; it
    is None where all items have the request's. `anonymous_id` is for items without one.
    """

    visitor: Visitor = UNKNOWN_VISITOR
    visitors: Sequence[Visitor | None] | None = None
    anonymous_id: str = ""


NO_ENRICHMENT = Enrichment()


class ReportsVisitor(Protocol):
    """An item of a call with a key, which says more of its visitor than the call does."""

    @property
    def ip(self) -> Any:  # noqa: ANN401 - text, once it was checked
        """The visitor's address, or None."""
        ...

    @property
    def user_agent(self) -> Any:  # noqa: ANN401 - as above
        """The visitor's User-Agent, or None."""
        ...


class Enricher:
    """Derives a `Visitor` from address and User-Agent, and caches recent ones."""

    def __init__(
        self,
        *,
        geo: GeoLocator,
        user_agents: UserAgentParser,
        salts: DailySalts,
        cache_size: int = _VISITOR_CACHE_SIZE,
    ) -> None:
        self._geo = geo
        self._user_agents = user_agents
        self._salts = salts
        self._visitor = functools.lru_cache(cache_size)(
            functools.partial(look_up_visitor, geo, user_agents)
        )
        self._turn = asyncio.Lock()

    async def enrich_from_items(self, items: Sequence[ReportsVisitor]) -> Enrichment:
        """Enrich a request with a key, from the `ip` and `userAgent` of its items alone.

        Lets the event loop go round between looking up some visitors and the next.
        """
        if not _report_visitors(items):
            return NO_ENRICHMENT
        visitors: list[Visitor | None] = []
        for start in range(0, len(items), VISITORS_AT_ONCE):
            async with self._turn:
                await asyncio.sleep(0)
                visitors += self._visitors_of_some(items, start)
        return Enrichment(visitors=visitors)

    def enrich_from_items_nowait(self, items: Sequence[ReportsVisitor]) -> Enrichment | None:
        """Do what `enrich_from_items` does, or return None where it has many to look up."""
        if not _report_visitors(items):
            return NO_ENRICHMENT
        visitors: list[Visitor | None] = []
        most = self._looked_up() + VISITORS_AT_ONCE
        for start in range(0, len(items), VISITORS_AT_ONCE):
            if self._looked_up() >= most:
                return None
            visitors += self._visitors_of_some(items, start)
        return Enrichment(visitors=visitors)

    async def enrich_client(
        self,
        *,
        has_anonymous_ids: bool,
        website_id: str,
        address: str,
        user_agent: str,
        now_ms: int,
    ) -> Enrichment:
        """Enrich a request without a key, from its client. All items are of one website.

        `has_anonymous_ids` says that every item has an anonymous id of its own.
        """
        salt = None if has_anonymous_ids else await self._salts.get(now_ms)
        return self._enrich_with_salt(website_id, address, user_agent, salt)

    def enrich_client_nowait(
        self,
        *,
        has_anonymous_ids: bool,
        website_id: str,
        address: str,
        user_agent: str,
        now_ms: int,
    ) -> Enrichment | None:
        """Do what `enrich_client` does, or return None where it would have to wait."""
        salt = None if has_anonymous_ids else self._salts.get_nowait(now_ms)
        if salt is None and not has_anonymous_ids:
            return None
        return self._enrich_with_salt(website_id, address, user_agent, salt)

    def _enrich_with_salt(
        self, website_id: str, address: str, user_agent: str, salt: bytes | None
    ) -> Enrichment:
        user_agent = user_agent[:MAX_USER_AGENT_LENGTH]
        visitor = self._visitor(address, user_agent)
        if salt is None:
            return Enrichment(visitor)
        anonymous_id = make_visitor_id(
            salt, website_id=website_id, address=address, user_agent=user_agent
        )
        return Enrichment(visitor, anonymous_id=anonymous_id)

    def _looked_up(self) -> int:
        """Return how many visitors were looked up, and not found in the cache."""
        return self._visitor.cache_info().misses

    def _visitors_of_some(
        self, items: Sequence[ReportsVisitor], start: int
    ) -> list[Visitor | None]:
        return [self._visitor_of_item(item) for item in items[start : start + VISITORS_AT_ONCE]]

    def _visitor_of_item(self, item: ReportsVisitor) -> Visitor | None:
        if item.ip is None and not item.user_agent:
            return None
        address = (item.ip or "").partition("%")[0]  # a zone has no bound, and would be cached
        visitor = self._visitor(address, item.user_agent or "")
        # A server reports its visitors: nothing that it forwards is excluded as a bot's.
        return msgspec.structs.replace(visitor, is_bot=False) if visitor.is_bot else visitor


def _report_visitors(items: Sequence[ReportsVisitor]) -> bool:
    return any(item.ip is not None or item.user_agent is not None for item in items)


def look_up_visitor(
    geo: GeoLocator, user_agents: UserAgentParser, address: str, user_agent: str
) -> Visitor:
    """Return the visitor of an address and a User-Agent, whatever the texts."""
    location = geo.locate(address)
    agent_info = user_agents.parse(user_agent)
    return Visitor(
        country=location.country,
        region=location.region,
        city=location.city,
        browser_name=agent_info.browser_name,
        browser_version=agent_info.browser_version,
        os_name=agent_info.os_name,
        os_version=agent_info.os_version,
        device_type=agent_info.device_type,
        is_bot=agent_info.is_bot,
    )


def make_visitor_id(salt: bytes, *, website_id: str, address: str, user_agent: str) -> str:
    """Return a visitor id without cookies: stable for a day, and not linkable to the next."""
    hash_input = f"{website_id}\0{address}\0{user_agent}".encode(errors="surrogatepass")
    return (
        "anon_"
        + hashlib.blake2b(hash_input, digest_size=_VISITOR_ID_BYTES, key=salt[:64]).hexdigest()
    )


def check_address(value: object) -> str:
    """Return an item's `ip`. Raises `ValueError` where it is not the text of an address."""
    text = value if isinstance(value, str) else ""
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError(ADDRESS_ERROR) from error
    return text


def check_user_agent(value: object) -> str:
    """Return an item's `userAgent`. Raises `ValueError` for other types and longer texts."""
    if not isinstance(value, str) or len(value) > MAX_USER_AGENT_LENGTH:
        raise ValueError(USER_AGENT_ERROR)
    return value


VISITOR_CHECKS: Mapping[str, Check] = {"ip": check_address, "user_agent": check_user_agent}
"""The rules of the fields that are used only on requests with a key."""


def check_visitors(items: Sequence[WireItem]) -> bool:
    """Check the visitor fields of the items of a request with a key; return whether there are any.

    Raises `ValueError`.
    """
    are_reported = False
    for item in items:
        if item.ip is not None:
            check_address(item.ip)
            are_reported = True
        if item.user_agent is not None:
            check_user_agent(item.user_agent)
            are_reported = True
    return are_reported
