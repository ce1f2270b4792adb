"""Remembers the visitors of an import: looking one up takes longer than decoding its line."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from headrace.ingest.receive.enrich import MAX_USER_AGENT_LENGTH
from headrace.model.log_records import Visitor

FindVisitor = Callable[[str, str], Visitor]
"""Returns the visitor of an address and a User-Agent; both may be empty."""

MAX_ADDRESS_LENGTH: Final = 45
"""Of an IPv4 address within an IPv6 address. A longer text is none, or has a zone, which is of no
public address."""

_CACHE_SIZE: Final = 65_536


def cached_visitors(look_up: FindVisitor) -> FindVisitor:
    """Return a function that gives `look_up` each address and User-Agent once.

    Files can have texts of any length, so what it remembers is bounded.
    """
    cached = lru_cache(_CACHE_SIZE)(look_up)

    def find_visitor(address: str, user_agent: str) -> Visitor:
        known = address if len(address) <= MAX_ADDRESS_LENGTH else ""
        return cached(known, user_agent[:MAX_USER_AGENT_LENGTH])

    return find_visitor
