"""What addresses and User-Agents tell."""

from typing import Protocol

from msgspec import Struct


class GeoLocation(Struct, frozen=True):
    """Where an address is; empty texts for what is not known."""

    country: str = ""
    region: str = ""
    city: str = ""


class UserAgentInfo(Struct, frozen=True):
    """What a User-Agent is; empty texts for what is not known."""

    browser_name: str = ""
    browser_version: str = ""
    os_name: str = ""
    os_version: str = ""
    device_type: str = ""
    is_bot: bool = False


class GeoLocator(Protocol):
    """Looks addresses up in memory; no network."""

    def locate(self, address: str) -> GeoLocation:
        """Return the place of an IPv4 or IPv6 address; an unknown or private one has none."""
        ...


class UserAgentParser(Protocol):
    """Parses User-Agents in memory, remembering the common ones."""

    def parse(self, user_agent: str) -> UserAgentInfo:
        """Return what a User-Agent is. Never raises, whatever the text."""
        ...
