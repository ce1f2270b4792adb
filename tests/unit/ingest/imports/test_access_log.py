"""Access logs: which lines are page views, and what becomes of them."""

import json
from typing import Any

import pytest

from headrace.model.imports import ImportFormat, LineChunk
from testing.imports import NOW_MS, decode_sample, decoder_of, refusals, rows_of

FORMAT = ImportFormat.ACCESS_LOG
NOT_A_LOG_LINE = "it is no line of an access log in the common or combined format"


def sample_rows() -> list[dict[str, Any]]:
    return [dict(row) for row in rows_of(decode_sample(FORMAT, "access.log").items)]


def test_pages_become_events_and_the_rest_is_skipped() -> None:
    chunk = decode_sample(FORMAT, "access.log")
    assert (chunk.lines, len(chunk.items), chunk.skipped) == (10, 4, 4)
    assert refusals(chunk) == {9: NOT_A_LOG_LINE, 10: NOT_A_LOG_LINE}
    first, second, third, fourth = sample_rows()
    assert first["time"].isoformat() == "2026-01-15T12:00:00+00:00"
    assert json.loads(first.pop("properties")) == {"method": "GET", "status": 200, "bytes": 5120}
    names = ("event_name", "path", "url", "referrer", "utm_source", "country")
    assert [first[name] for name in names] == [
        "screen_view",
        "/pricing",
        "/pricing?utm_source=news",
        "https://news.example/",
        "news",
        "CA",
    ]
    assert second["time"] == third["time"]
    assert second["time"].isoformat() == "2026-01-15T12:00:05+00:00"
    assert (second["path"], "referrer" in second) == ("/index.HTML", False)
    assert (fourth["path"], fourth["is_bot"]) == ("/", True)


def test_equal_lines_are_different_events_with_the_same_ids_in_every_run() -> None:
    first, second = ([row["id"] for row in sample_rows()] for _ in range(2))
    assert first == second
    assert len(set(first)) == 4


def test_equal_lines_are_counted_within_their_file() -> None:
    decoder = decoder_of(FORMAT)
    line = b'192.0.2.1 - - [15/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1'
    chunks = [LineChunk("a", 1, [line]), LineChunk("a", 2, [line]), LineChunk("b", 1, [line])]
    first, second, other = (
        decoder.decode(chunk, now_ms=NOW_MS).items[0].row_id for chunk in chunks
    )
    assert first == other != second


def test_file_that_is_named_twice_has_the_same_ids_again() -> None:
    decoder = decoder_of(FORMAT)
    line = b'192.0.2.1 - - [15/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1'
    chunks = [LineChunk("a", 1, [line]), LineChunk("a", 2, ())] * 2
    first, second = (
        item.row_id for chunk in chunks for item in decoder.decode(chunk, now_ms=NOW_MS).items
    )
    assert first == second


def test_visitors_are_distinguished_within_an_import_only() -> None:
    visitors = [row["anonymous_id"] for row in sample_rows()]
    assert visitors[1] == visitors[2] != visitors[0]
    assert all(visitor.startswith("anon_") for visitor in visitors)
    other = decoder_of(FORMAT, salt=b"other").decode(
        LineChunk("a", 1, [b'203.0.113.7 - - [15/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1']),
        now_ms=NOW_MS,
    )
    assert rows_of(other.items)[0]["anonymous_id"] not in visitors


def test_assets_are_taken_where_they_are_requested() -> None:
    line = b'192.0.2.1 - - [15/Jan/2026:12:00:00 +0000] "GET /a/app.js?v=1 HTTP/1.1" 200 1'
    chunk = decoder_of(FORMAT, takes_assets=True).decode(LineChunk("a", 1, [line]), now_ms=NOW_MS)
    (row,) = rows_of(chunk.items)
    assert (row["event_name"], row["path"]) == ("asset", "/a/app.js")


def test_hostile_lines_are_refused_or_skipped() -> None:
    hostile = [
        b"\0",
        b'a - - [15/Jan/2026:12:00:00 +9900] "GET / HTTP/1.1" 200 1',
        b'a - - [15/Xxx/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1',
        b'a - - [15/Jan/0001:12:00:00 +0000] "GET / HTTP/1.1" 200 1',
        b'a - - [15/Jan/2026:12:00:00 +0000] "GET /' + b"a" * 3000 + b' HTTP/1.1" 200 1',
        b'a - - [15/Jan/2026:12:00:00 +0000] "GET" 200 1',
        b'\xff - - [15/Jan/2026:12:00:00 +0000] "GET /\xe4 HTTP/1.1" 200 1',
    ]
    chunk = decoder_of(FORMAT).decode(LineChunk("a", 1, hostile), now_ms=NOW_MS)
    assert (sorted(refusals(chunk)), chunk.skipped) == ([1, 2, 3, 4, 5], 1)
    (row,) = rows_of(chunk.items)
    assert row["path"] == "/ä"


@pytest.mark.parametrize("host", ["shop.example:443", "shop.example"])
@pytest.mark.parametrize("address", ["203.0.113.7", "2001:db8::7"])
def test_lines_of_several_virtual_hosts_are_refused(host: str, address: str) -> None:
    line = f'{host} {address} - - [15/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1'
    chunk = decoder_of(FORMAT).decode(LineChunk("a", 1, [line.encode()]), now_ms=NOW_MS)
    reason = "it begins with a virtual host: import the lines of one host, without this field"
    assert (chunk.items, refusals(chunk)) == ([], {1: reason})


@pytest.mark.parametrize(
    "addresses", ["203.0.113.7, 10.0.0.1, 2001:db8::7", "203.0.113.7,10.0.0.1"]
)
def test_first_of_the_addresses_of_proxies_is_the_visitor(addresses: str) -> None:
    end = b' - - [15/Jan/2026:12:00:00 +0000] "GET /%d HTTP/1.1" 200 1'
    lines = [addresses.encode() + end % 1, b"203.0.113.7" + end % 2]
    chunk = decoder_of(FORMAT).decode(LineChunk("a", 1, lines), now_ms=NOW_MS)
    assert refusals(chunk) == {}
    forwarded, direct = rows_of(chunk.items)
    assert forwarded["anonymous_id"] == direct["anonymous_id"]


END = ' - - [15/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1'


@pytest.mark.parametrize(
    "before",
    [
        "Jan 15 12:00:00 web1 nginx: 203.0.113.7",
        "<190>Jan 15 12:00:00 web1 nginx: 2001:db8::7",
        "web-1 | 203.0.113.7",
        "2026-01-15T12:00:00Z stdout F 203.0.113.7",
    ],
    ids=["syslog", "syslog with a priority", "compose", "kubernetes"],
)
def test_lines_with_other_fields_before_the_address_are_refused(before: str) -> None:
    chunk = decoder_of(FORMAT).decode(LineChunk("a", 1, [(before + END).encode()]), now_ms=NOW_MS)
    reason = "other fields stand before the address, as those of syslog: remove them"
    assert (chunk.items, refusals(chunk)) == ([], {1: reason})


@pytest.mark.parametrize("rest", ['"', '"https://news.ex', '"-"', '"-" ', '"-" "Mozilla/5.0 (Ma'])
def test_line_that_is_cut_off_is_refused(rest: str) -> None:
    """The whole line would be another event."""
    line = f"203.0.113.7{END} {rest}".encode()
    chunk = decoder_of(FORMAT).decode(LineChunk("a", 1, [line]), now_ms=NOW_MS)
    assert (chunk.items, refusals(chunk)) == ([], {1: NOT_A_LOG_LINE})


@pytest.mark.parametrize("rest", ["", " ", " 0.004", ' "-" "-"', ' "-" "-" "203.0.113.9" 0.004'])
def test_fields_behind_those_of_the_format_are_ignored(rest: str) -> None:
    line = f"203.0.113.7{END}{rest}".encode()
    chunk = decoder_of(FORMAT).decode(LineChunk("a", 1, [line]), now_ms=NOW_MS)
    assert refusals(chunk) == {}
    (row,) = rows_of(chunk.items)
    assert row["path"] == "/"


@pytest.mark.parametrize(
    ("logged", "meant"),
    [
        (r"caf\xc3\xa9", "café"),
        (r"caf\xC3\xA9", "café"),
        (r"caf\xe9", "café"),
        (r"a\x22b\x5Cc\x5Cx22", 'a"b\\c\\x22'),
        (r"a\"b\\c\\x22", 'a"b\\c\\x22'),
        (r"a\tb\x09c", "a\tb\tc"),
        (r"a\x00b\q\x2", r"a\x00b\q\x2"),
    ],
)
def test_escapes_of_servers_are_undone(logged: str, meant: str) -> None:
    line = (
        rf'203.0.113.7 - - [15/Jan/2026:12:00:00 +0000] "GET /{logged} HTTP/1.1" 200 1 '
        rf'"https://news.example/{logged}" "Googlebot {logged}"'
    )
    chunk = decoder_of(FORMAT).decode(LineChunk("a", 1, [line.encode()]), now_ms=NOW_MS)
    assert refusals(chunk) == {}
    (row,) = rows_of(chunk.items)
    assert (row["path"], row["referrer"], row["is_bot"]) == (
        f"/{meant}",
        f"https://news.example/{meant}",
        True,
    )
