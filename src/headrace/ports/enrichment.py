"""Enrichment of events from client addresses and User-Agents."""

from typing import Protocol

from msgspec import Struct


class GeoLocation(Struct, frozen=True):
    """The location of an address; unknown fields are empty."""

    country: str = ""
    region: str = ""
    city: str = ""


class UserAgentInfo(Struct, frozen=True):
    """A parsed User-Agent; unknown fields are empty."""

    browser_name: str = ""
    browser_version: str = ""
    os_name: str = ""
    os_version: str = ""
    device_type: str = ""
    is_bot: bool = False


class GeoLocator(Protocol):
    """Locates addresses from a database in memory, without network access."""

    def locate(self, address: str) -> GeoLocation:
        """Return the location of an IPv4 or IPv6 address; empty for private and unknown ones."""
        ...


class UserAgentParser(Protocol):
    """Parses User-Agents in memory and caches recent results."""

    def parse(self, user_agent: str) -> UserAgentInfo:
        """Parse a User-Agent. Never raises, whatever the text."""
        ...
