"""Geo locations of IP addresses, from a memory-mapped file in MaxMind's format (MMDB)."""

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import maxminddb

from headrace.base.errors import OperatorError, system_reason
from headrace.ports.enrichment import GeoLocation

BUNDLED_DATABASE = Path(__file__).parent / "data" / "geo-whois-asn-country.mmdb"
"""Countries only; data/README.md has its source."""

_Path = tuple[str | int, ...]

_UNKNOWN_LOCATION = GeoLocation()

_COUNTRY: tuple[_Path, ...] = (("country_code",), ("country", "iso_code"))
_REGION: tuple[_Path, ...] = (("state1",), ("subdivisions", 0, "names", "en"))
_CITY: tuple[_Path, ...] = (("city",), ("city", "names", "en"))


class _Metadata(Protocol):
    @property
    def ip_version(self) -> int: ...


class Reader(Protocol):
    """The part of the library's reader that is used; its types are recursive and incomplete."""

    def get(self, ip_address: ipaddress.IPv4Address | ipaddress.IPv6Address, /) -> object:
        """Return the record of an address, or None."""
        ...

    def metadata(self) -> _Metadata:
        """Return the metadata of the file."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class MaxMindGeoLocator:
    """The `GeoLocator` over one open file. A look-up takes microseconds, from any thread."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._has_ipv6 = reader.metadata().ip_version == 6

    def locate(self, address: str) -> GeoLocation:
        """Return the location of an address; empty where it is not public, invalid or unknown."""
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return _UNKNOWN_LOCATION
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
            parsed = parsed.ipv4_mapped
        # Databases do locate private networks: the bundled one has 192.168.0.0/16 in Australia.
        if not parsed.is_global or (parsed.version == 6 and not self._has_ipv6):
            return _UNKNOWN_LOCATION
        try:
            record = self._reader.get(parsed)
        except maxminddb.InvalidDatabaseError:
            return _UNKNOWN_LOCATION  # a damaged record loses the location, never the event
        return read_location(record)

    def close(self) -> None:
        """Close the file. `locate` must not be called afterwards."""
        self._reader.close()


def open_geo_database(path: str) -> MaxMindGeoLocator:
    """Open a file in MaxMind's format; "" means the bundled one.

    Raises `OperatorError` when the file cannot be read or has another format.
    """
    try:
        reader = maxminddb.open_database(path or str(BUNDLED_DATABASE))  # pyright: ignore[reportUnknownMemberType] - bare PathLike
    except OSError as error:
        reason = system_reason(error)
        raise OperatorError(f"cannot read the geo database {path!r}: {reason}") from error
    except (ValueError, maxminddb.InvalidDatabaseError) as error:
        raise OperatorError(
            f"the geo database {path!r} is not a file in MaxMind's format (.mmdb)"
        ) from error
    return MaxMindGeoLocator(reader)


def read_location(record: object) -> GeoLocation:
    """Decode a record: flat as in ip-location-db, or nested as in GeoLite2 and DB-IP."""
    return GeoLocation(
        country=_first_text(record, _COUNTRY),
        region=_first_text(record, _REGION),
        city=_first_text(record, _CITY),
    )


def _first_text(record: object, paths: tuple[_Path, ...]) -> str:
    found = (_resolve_path(record, path) for path in paths)
    return next((value for value in found if isinstance(value, str)), "")


def _resolve_path(value: object, path: _Path) -> object:
    for step in path:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(step)
        elif isinstance(step, int) and isinstance(value, Sequence):
            value = next(iter(cast("Sequence[object]", value)[step:]), None)
        else:
            return None
    return value
