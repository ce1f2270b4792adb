"""How the application parses headers and the query string."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.base.errors import OperatorError
from headrace.http.reading.body import is_json_type
from headrace.http.reading.client_address import ClientAddresses, normalize_address
from headrace.http.reading.credentials import read_api_key, read_parameter, read_website_id
from headrace.http.reading.negotiation import choose_media_type
from headrace.http.request import Request
from headrace.http.responses import Header

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"

KEYS: dict[str, tuple[dict[bytes, bytes], str | None]] = {
    "none": ({}, None),
    "bearer": ({b"authorization": b"Bearer hr_1"}, "hr_1"),
    "bearer in another case": ({b"authorization": b"bEARER hr_1"}, "hr_1"),
    "bearer with blanks": ({b"authorization": b"Bearer   hr_1  "}, "hr_1"),
    "bearer with a tab": ({b"authorization": b"Bearer\thr_1"}, "hr_1"),
    "empty bearer": ({b"authorization": b"Bearer "}, ""),
    "bare bearer": ({b"authorization": b"Bearer"}, ""),
    "another scheme": ({b"authorization": b"Basic dTpw"}, None),
    "no scheme": ({b"authorization": b"hr_1"}, None),
    "scheme with the same prefix": ({b"authorization": b"BearerX hr_1"}, None),
    "x-api-key": ({b"x-api-key": b" hr_1 "}, "hr_1"),
    "empty x-api-key": ({b"x-api-key": b""}, ""),
    "x-api-key beside another scheme": (
        {b"authorization": b"Basic dTpw", b"x-api-key": b"hr_1"},
        "hr_1",
    ),
    "bearer before x-api-key": ({b"authorization": b"Bearer hr_1", b"x-api-key": b"hr_2"}, "hr_1"),
    "empty bearer before x-api-key": ({b"authorization": b"Bearer", b"x-api-key": b"hr_2"}, ""),
    "not ASCII": ({b"authorization": b"Bearer schl\xc3\xbcssel"}, "schlÃ¼ssel"),
}


@pytest.mark.parametrize(("headers", "expected"), KEYS.values(), ids=list(KEYS))
def test_api_key_is_read(headers: dict[bytes, bytes], expected: str | None) -> None:
    assert read_api_key(headers, list(headers.items())) == expected


REPEATED: dict[str, tuple[list[Header], str | None]] = {
    "two bearers": ([(b"authorization", b"Bearer hr_1"), (b"authorization", b"Bearer hr_2")], ""),
    "equal bearers": ([(b"authorization", b"Bearer hr_1")] * 2, ""),
    "bearer and another scheme": (
        [(b"authorization", b"Bearer hr_1"), (b"authorization", b"Basic dTpw")],
        "",
    ),
    "two of another scheme": ([(b"authorization", b"Basic dTpw")] * 2, ""),
    "two x-api-key": ([(b"x-api-key", b"hr_1"), (b"x-api-key", b"hr_2")], ""),
    "bearer and two x-api-key": (
        [(b"x-api-key", b"hr_1"), (b"authorization", b"Bearer hr_1"), (b"x-api-key", b"hr_1")],
        "",
    ),
    "another header twice": (
        [(b"accept", b"a"), (b"authorization", b"Bearer hr_1"), (b"accept", b"b")],
        "hr_1",
    ),
    "another header twice and no key": ([(b"accept", b"a"), (b"accept", b"b")], None),
}


@pytest.mark.parametrize(("fields", "expected"), REPEATED.values(), ids=list(REPEATED))
def test_repeated_key_field_is_an_invalid_key(fields: list[Header], expected: str | None) -> None:
    assert read_api_key(dict(fields), fields) == expected


HEADER = {b"databuddy-client-id": b"web_h"}
IDENTIFIERS: dict[str, tuple[bytes, dict[bytes, bytes], str | None]] = {
    "none": (b"", {}, None),
    "website_id": (b"website_id=web_1", HEADER, "web_1"),
    "client_id": (b"x=1&client_id=web_1", HEADER, "web_1"),
    "website_id before client_id": (b"client_id=web_2&website_id=web_1", {}, "web_1"),
    "empty website_id": (b"website_id=&client_id=web_2", {}, "web_2"),
    "both empty": (b"website_id=&client_id=", HEADER, "web_h"),
    "header": (b"", HEADER, "web_h"),
    "empty header": (b"", {b"databuddy-client-id": b""}, None),
    "first that is not empty of several": (b"website_id=&website_id=web_1", {}, "web_1"),
    "percent-encoded": (b"website%5Fid=web%5f1+a", {}, "web_1 a"),
    "not UTF-8": (b"website_id=%FF", {}, "\ufffd"),
    "another name": (b"site_id=web_1", {}, None),
}


@pytest.mark.parametrize(
    ("query", "headers", "expected"), IDENTIFIERS.values(), ids=list(IDENTIFIERS)
)
def test_website_identifier_is_read(
    query: bytes, headers: dict[bytes, bytes], expected: str | None
) -> None:
    assert read_website_id(query, headers) == expected


@given(st.binary(max_size=60))
def test_any_query_string_can_be_read(query: bytes) -> None:
    value = read_parameter(query, b"a")
    assert value is None or value != ""


TYPES = {
    b"application/json": True,
    b"Application/JSON": True,
    b"application/json; charset=utf-8": True,
    b'application/json;charset="UTF-8"': True,
    b"application/json; charset=utf8": True,
    b"application/json; version=1": True,
    b"text/json": True,
    b"text/plain;charset=UTF-8": True,
    b"application/vnd.api+json": True,
    b"": True,
    b"application/json; charset=latin-1": False,
    b"text/plain; charset=utf-16": False,
    b"application/jsonp": False,
    b"application/x-www-form-urlencoded": False,
    b"image/svg+json": False,
    b"text/html": False,
    b"json": False,
    b"\xff": False,
}


@pytest.mark.parametrize(("content_type", "expected"), TYPES.items())
def test_content_type_is_checked(content_type: bytes, expected: bool) -> None:
    assert is_json_type(content_type) is expected


ACCEPTED = {
    "": JSON,
    "*/*": JSON,
    JSON: JSON,
    CSV: CSV,
    ARROW: ARROW,
    "TEXT/CSV": CSV,
    "text/*": CSV,
    "text/csv; header=present": CSV,
    "text/csv, */*": CSV,
    "*/*, text/csv": CSV,
    "text/csv, application/json": CSV,
    "application/json, text/csv": JSON,
    "text/csv;q=0.5, application/json": JSON,
    "text/csv;q=0.9, application/json;q=0.8": CSV,
    "application/json;q=0, text/csv;q=0.1": CSV,
    "text/csv;q=0, */*": JSON,
    "application/*;q=0.2, text/csv;q=0.1": JSON,
    "text/html, application/xhtml+xml, */*;q=0.8": JSON,
    "image/png": JSON,
    "text/csv;q=nonsense": CSV,
    "text/csv;q=7": CSV,
    ",;q=1,": JSON,
}


@pytest.mark.parametrize(("accept", "expected"), ACCEPTED.items())
def test_format_is_negotiated_by_quality(accept: str, expected: str) -> None:
    assert choose_media_type(accept, (JSON, CSV, ARROW)) == expected


def make_request(peer: str | None, *headers: tuple[str, str]) -> Request:
    async def receive() -> Any:
        raise AssertionError("nothing is received for an address")

    pairs = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"client": (peer, 1) if peer is not None else None, "headers": pairs}
    return Request(scope, receive, "id")


PROXIES = ("10.0.0.0/8", "fd00::/8", "192.0.2.1")
XFF, FORWARDED, REAL_IP = "x-forwarded-for", "forwarded", "x-real-ip"
ADDRESSES: dict[str, tuple[Request, str]] = {
    "peer": (make_request("203.0.113.9"), "203.0.113.9"),
    "peer within IPv6": (make_request("::ffff:203.0.113.9"), "203.0.113.9"),
    "IPv6 peer with a zone": (make_request("FE80:0::1%eth0"), "fe80::1"),
    "unix socket": (make_request(""), ""),
    "no peer": (make_request(None), ""),
    "peer that is no address": (make_request("testclient", (XFF, "203.0.113.9")), ""),
    "untrusted peer with a header": (
        make_request("203.0.113.9", (XFF, "198.51.100.7")),
        "203.0.113.9",
    ),
    "proxy without a header": (make_request("10.1.2.3"), "10.1.2.3"),
    "one proxy": (make_request("10.1.2.3", (XFF, "203.0.113.9")), "203.0.113.9"),
    "what the client claims before its proxy": (
        make_request("10.1.2.3", (XFF, "1.1.1.1, 203.0.113.9")),
        "203.0.113.9",
    ),
    "two proxies": (
        make_request("10.1.2.3", (XFF, "1.1.1.1, 203.0.113.9, 192.0.2.1")),
        "203.0.113.9",
    ),
    "several headers": (
        make_request("10.1.2.3", (XFF, "1.1.1.1"), (XFF, "203.0.113.9"), (XFF, "10.9.9.9")),
        "203.0.113.9",
    ),
    "proxies alone": (make_request("10.1.2.3", (XFF, "10.0.0.7, 10.0.0.8")), "10.0.0.7"),
    "proxy within IPv6": (
        make_request("::ffff:10.1.2.3", (XFF, "::ffff:203.0.113.9")),
        "203.0.113.9",
    ),
    "IPv6": (make_request("fd00::1", (XFF, "2001:db8::7")), "2001:db8::7"),
    "port": (make_request("10.1.2.3", (XFF, "203.0.113.9:443")), "203.0.113.9"),
    "IPv6 with a port": (make_request("10.1.2.3", (XFF, "[2001:db8::7]:443")), "2001:db8::7"),
    "proxy that sends unknown": (make_request("10.1.2.3", (XFF, "1.1.1.1, unknown")), ""),
    "Forwarded": (
        make_request("10.1.2.3", (FORWARDED, 'for=1.1.1.1, For="[2001:db8::7]:80";proto=https')),
        "2001:db8::7",
    ),
    "Forwarded without for": (make_request("10.1.2.3", (FORWARDED, "proto=https")), ""),
    "X-Real-IP": (make_request("10.1.2.3", (REAL_IP, "203.0.113.9")), "203.0.113.9"),
    "X-Forwarded-For before the others": (
        make_request(
            "10.1.2.3", (REAL_IP, "1.1.1.1"), (FORWARDED, "for=1.1.1.2"), (XFF, "203.0.113.9")
        ),
        "203.0.113.9",
    ),
}


@pytest.mark.parametrize(("request_", "expected"), ADDRESSES.values(), ids=list(ADDRESSES))
def test_forwarded_address_is_used_behind_trusted_proxies_only(
    request_: Request, expected: str
) -> None:
    assert ClientAddresses(PROXIES).find(request_) == expected


def test_forwarded_address_is_ignored_without_trusted_proxies() -> None:
    assert ClientAddresses(()).find(make_request("10.1.2.3", (XFF, "203.0.113.9"))) == "10.1.2.3"


@given(st.text(max_size=40))
def test_any_forwarding_header_is_accepted(value: str) -> None:
    header = (XFF, value.encode("latin-1", "replace").decode("latin-1"))

    address = ClientAddresses(PROXIES).find(make_request("10.1.2.3", header))

    assert address in ("", normalize_address(address))


def test_invalid_proxy_network_gets_a_clear_error() -> None:
    with pytest.raises(OperatorError) as caught:
        ClientAddresses(("10.0.0.0/8", "10.0.0.0/40"))

    assert str(caught.value) == (
        "trusted_proxies: '10.0.0.0/40' is neither an address nor a network such as 10.0.0.0/8"
    )
