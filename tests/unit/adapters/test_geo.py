from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.adapters.enrichment.geo import BUNDLED_DATABASE, open_geo_database, read_location
from headrace.base.errors import OperatorError
from headrace.ports.enrichment import GeoLocation

Encodable: TypeAlias = "dict[str, Encodable] | list[Encodable] | str | bytes | float"

INCLUDED = open_geo_database("")
METADATA_MARKER = b"\xab\xcd\xefMaxMind.com"

COUNTRIES = {
    "8.8.8.8": "US",
    "1.1.1.1": "AU",
    "77.88.8.8": "RU",
    "114.114.114.114": "CN",
    "133.243.3.35": "JP",
    "168.126.63.1": "KR",
    "193.0.6.139": "NL",
    "196.216.2.6": "ZA",
    "200.160.2.3": "BR",
    "212.27.48.10": "FR",
    "213.133.100.100": "DE",
    "2001:4860:4860::8888": "US",
    "2001:67c:2e8:22::c100:68b": "NL",
    "2001:dc0:2001:0:4608::25": "AU",
    "2001:12ff:0:4::6": "BR",
    "2a01:e0c:1:1599::1": "FR",
    "::ffff:213.133.100.100": "DE",
    "::FFFF:d585:6464": "DE",
}

NO_LOCATION = {
    "private": "192.168.1.1",
    "private, mapped to IPv6": "::ffff:192.168.1.1",
    "private, large": "10.0.0.1",
    "carrier-grade NAT": "100.64.0.1",
    "loopback": "127.0.0.1",
    "loopback in IPv6": "::1",
    "link-local with its zone": "fe80::1%eth0",
    "documentation": "2001:db8::1",
    "multicast": "224.0.0.1",
    "nobody's": "0.0.0.0",  # noqa: S104 - looked up, not bound
    "too short": "1.2.3",
    "leading zero": "01.1.1.1",
    "blank": " 8.8.8.8",
    "port": "8.8.8.8:443",
    "NUL": "8.8.8.8\0",
    "lone surrogate": "\ud800",
    "word": "localhost",
    "empty": "",
}

GEOLITE2_CITY: dict[str, Encodable] = {
    "city": {"geoname_id": 2950159, "names": {"de": "Berlin", "en": "Berlin"}},
    "continent": {"code": "EU", "names": {"en": "Europe"}},
    "country": {"iso_code": "DE", "names": {"de": "Deutschland", "en": "Germany"}},
    "location": {"latitude": 52.52, "longitude": 13.4},
    "registered_country": {"iso_code": "FR", "names": {"en": "France"}},
    "subdivisions": [
        {"iso_code": "BE", "names": {"de": "Land Berlin", "en": "State of Berlin"}},
        {"iso_code": "X", "names": {"en": "Smaller part"}},
    ],
}

RECORDS: dict[str, tuple[object, GeoLocation]] = {
    "GeoLite2 city": (GEOLITE2_CITY, GeoLocation("DE", "State of Berlin", "Berlin")),
    "DB-IP country": (
        {"country": {"iso_code": "NO", "names": {"en": "Norway"}}},
        GeoLocation("NO"),
    ),
    "flat country": ({"country_code": "SE"}, GeoLocation("SE")),
    "flat city": (
        {"city": "Osaka", "country_code": "JP", "latitude": 34.6, "state1": "Osaka Prefecture"},
        GeoLocation("JP", "Osaka Prefecture", "Osaka"),
    ),
    "no English names": (
        {"city": {"names": {"de": "Wien"}}, "country": {"iso_code": "AT"}},
        GeoLocation("AT"),
    ),
    "no subdivision": ({"country": {"iso_code": "SG"}, "subdivisions": []}, GeoLocation("SG")),
    "wrong types": ({"country_code": 7, "city": ["x"], "subdivisions": "text"}, GeoLocation()),
    "of autonomous systems": ({"autonomous_system_number": 64512}, GeoLocation()),
    "text": ("DE", GeoLocation()),
    "nothing": (None, GeoLocation()),
}


@pytest.mark.parametrize(("address", "country"), COUNTRIES.items(), ids=COUNTRIES)
def test_included_database_knows_countries(address: str, country: str) -> None:
    assert INCLUDED.locate(address) == GeoLocation(country=country)


@pytest.mark.parametrize("address", NO_LOCATION.values(), ids=NO_LOCATION)
def test_non_public_address_has_no_location(address: str) -> None:
    assert INCLUDED.locate(address) == GeoLocation()


@given(st.one_of(st.text(), st.ip_addresses().map(str)))
def test_any_text_gives_a_location_with_a_country_or_none(text: str) -> None:
    location = INCLUDED.locate(text)
    assert location == GeoLocation(country=location.country)
    assert len(location.country) in (0, 2)


@pytest.mark.parametrize(("record", "location"), RECORDS.values(), ids=RECORDS)
def test_records_of_every_layout_are_read(record: object, location: GeoLocation) -> None:
    assert read_location(record) == location


def test_custom_database_gives_regions_and_cities(tmp_path: Path) -> None:
    geo = open_geo_database(write_database(tmp_path, record=GEOLITE2_CITY, ip_version=6))
    berlin = GeoLocation("DE", "State of Berlin", "Berlin")
    assert (geo.locate("8.8.8.8"), geo.locate("2a01:e0c:1:1599::1")) == (berlin, berlin)
    geo.close()


def test_ipv4_only_database_has_no_location_for_ipv6(tmp_path: Path) -> None:
    geo = open_geo_database(write_database(tmp_path, record={"country_code": "SE"}, ip_version=4))
    found = [geo.locate(address) for address in ("8.8.8.8", "::ffff:8.8.8.8", "2a01:e0c::1")]
    assert found == [GeoLocation("SE"), GeoLocation("SE"), GeoLocation()]
    geo.close()


def test_damaged_record_has_no_location(tmp_path: Path) -> None:
    path = Path(write_database(tmp_path, record={"country_code": "SE"}, ip_version=6))
    path.write_bytes(path.read_bytes().replace(b"\xe1\x4ccountry_code", b"\xe1\xffcountry_code", 1))
    geo = open_geo_database(str(path))
    assert geo.locate("8.8.8.8") == GeoLocation()
    geo.close()


def test_missing_database_is_one_error(tmp_path: Path) -> None:
    path = str(tmp_path / "none.mmdb")
    with pytest.raises(OperatorError) as caught:
        open_geo_database(path)
    assert str(caught.value) == f"cannot read the geo database {path!r}: no such file or directory"


@pytest.mark.parametrize(
    "content",
    [b"", b"ip,country\n", METADATA_MARKER, BUNDLED_DATABASE.read_bytes()[:100_000]],
    ids=["empty", "text", "marker alone", "cut off"],
)
def test_invalid_database_file_is_one_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "geo.mmdb"
    path.write_bytes(content)
    assert rejection(str(path)) == (
        f"the geo database {str(path)!r} is not a file in MaxMind's format (.mmdb)"
    )


def test_directory_and_invalid_path_are_rejected(tmp_path: Path) -> None:
    sentence = "the geo database {!r} is not a file in MaxMind's format (.mmdb)"
    paths = [str(tmp_path), "a\0b"]
    assert [rejection(path) for path in paths] == [sentence.format(path) for path in paths]


def rejection(path: str) -> str:
    with pytest.raises(OperatorError) as caught:
        open_geo_database(path)
    return str(caught.value)


def write_database(directory: Path, *, record: Encodable, ip_version: int) -> str:
    """Write a database whose search tree has one node: every address has the same record."""
    metadata: dict[str, Encodable] = {
        "binary_format_major_version": uint16(2),
        "binary_format_minor_version": uint16(0),
        "build_epoch": b"\x01\x02\x01",
        "database_type": "Test",
        "description": {"en": "Test"},
        "ip_version": uint16(ip_version),
        "languages": ["en"],
        "node_count": b"\xc1\x01",
        "record_size": uint16(24),
    }
    pointer = (1 + 16).to_bytes(3)  # the number of nodes, the separator, offset 0
    parts = (pointer * 2, bytes(16), encode(record), METADATA_MARKER, encode(metadata))
    path = directory / "geo.mmdb"
    path.write_bytes(b"".join(parts))
    return str(path)


def encode(value: Encodable) -> bytes:
    """Encode texts of at most 28 bytes, and maps and arrays of them; bytes are already encoded."""
    match value:
        case dict():
            pairs = (encode(key) + encode(item) for key, item in value.items())
            return bytes([0xE0 | len(value)]) + b"".join(pairs)
        case list():
            return bytes([len(value), 4]) + b"".join(map(encode, value))
        case bytes():
            return value
        case _:
            text = str(value).encode()
            return bytes([0x40 | len(text)]) + text


def uint16(value: int) -> bytes:
    return bytes([0xA1, value])
