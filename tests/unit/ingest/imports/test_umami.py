"""Umami: events joined with their sessions, from CSV files and from a dump."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.ingest.imports.umami import is_session_file
from headrace.model.imports import DecodedChunk, ImportFormat, LineChunk
from testing.imports import NOW_MS, SAMPLES, decoder_of, refusals, rows_of

KEYS = ("id", "website_id", "time", "received_at")


def decode(*names: str, chunk_lines: int = 1000) -> list[DecodedChunk]:
    """Decode sample files with one decoder, in chunks of so many lines."""
    decoder = decoder_of(ImportFormat.UMAMI)
    chunks: list[DecodedChunk] = []
    for name in names:
        lines = (SAMPLES / name).read_bytes().split(b"\n")[:-1]
        for first in range(0, len(lines), chunk_lines):
            chunk = LineChunk(name, first + 1, lines[first : first + chunk_lines])
            chunks.append(decoder.decode(chunk, now_ms=NOW_MS))
    return chunks


def rows_in(chunks: list[DecodedChunk]) -> list[dict[str, Any]]:
    return [dict(row) for chunk in chunks for row in (rows_of(chunk.items) if chunk.items else [])]


def without_keys(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in KEYS}


@pytest.mark.parametrize("chunk_lines", [1, 2, 1000])
def test_events_are_joined_with_their_sessions(chunk_lines: int) -> None:
    chunks = decode("umami-session.csv", "umami-website_event.csv", chunk_lines=chunk_lines)
    view, signup = rows_in(chunks)
    assert view["time"].isoformat() == "2026-01-15T12:00:00.123000+00:00"
    assert without_keys(view) == {
        "event_name": "screen_view",
        "anonymous_id": "6f1d2e00-0000-4000-8000-000000000001",
        "session_id": "7a000000-0000-4000-8000-000000000001",
        "profile_id": "customer 7",
        "url": "https://shop.example/pricing?utm_source=news",
        "path": "/pricing",
        "title": 'Pricing, "new"\nsecond line',
        "referrer": "https://news.example/a",
        "country": "DE",
        "region": "DE-BE",
        "city": "Berlin",
        "browser_name": "Edge",
        "os_name": "Windows",
        "os_version": "10",
        "device_type": "desktop",
        "language": "de-DE",
        "screen_resolution": "1536x864",
        "utm_source": "news",
    }
    assert json.loads(signup.pop("properties")) == {"tag": "beta"}
    assert without_keys(signup) == {
        "event_name": "signup",
        "anonymous_id": "6f1d2e00-0000-4000-8000-000000000002",
        "session_id": "6f1d2e00-0000-4000-8000-000000000002",
        "path": "/pricing",
        "title": "Pricing",
        "country": "FR",
        "browser_name": "Safari",
        "os_name": "iOS",
        "device_type": "mobile",
        "language": "fr-FR",
        "screen_resolution": "390x844",
    }
    refused = {line: reason for chunk in chunks for line, reason in refusals(chunk).items()}
    time_error = "must be epoch milliseconds, an ISO 8601 date or time, or an RFC 2822 date"
    assert refused == {
        5: "it has another number of columns than its header",
        6: f"timestamp {time_error}",
    }
    lines = sum(chunk.lines for chunk in chunks)
    assert lines == 9 == 2 + 2 + sum(chunk.skipped for chunk in chunks)


def test_file_that_is_named_twice_has_the_same_rows_again() -> None:
    chunks = decode("umami-session.csv", *["umami-website_event.csv"] * 2)
    _, first, second = chunks
    assert refusals(first) == refusals(second)
    assert first.items
    assert [item.row_id for item in first.items] == [item.row_id for item in second.items]


def test_dump_of_postgresql_is_read() -> None:
    chunks = decode("umami-dump.sql")
    (row,) = rows_in(chunks)
    assert without_keys(row) == {
        "event_name": "screen_view",
        "anonymous_id": "6f1d2e00-0000-4000-8000-000000000001",
        "session_id": "7a000000-0000-4000-8000-000000000001",
        "path": "/a",
        "title": "Tab\tand\\slash",
        "country": "US",
        "region": "US-CA",
        "browser_name": "Firefox",
        "os_name": "macOS",
        "device_type": "desktop",
        "language": "en-US",
        "screen_resolution": "1920x1080",
    }
    assert [refusals(chunk) for chunk in chunks] == [{}]


def test_session_files_are_known_by_their_header() -> None:
    headers = {
        name: is_session_file((SAMPLES / name).read_bytes().split(b"\n")[0])
        for name in ("umami-session.csv", "umami-website_event.csv", "umami-dump.sql")
    }
    assert list(headers.values()) == [True, False, False]


def test_files_of_other_tables_are_refused() -> None:
    decoder = decoder_of(ImportFormat.UMAMI)
    chunk = decoder.decode(LineChunk("a", 1, [b"user_id,name", b"1,a"]), now_ms=NOW_MS)
    assert chunk.items == []
    reason = "it belongs neither to website_event nor to session: a header must name columns"
    assert refusals(chunk) == {1: reason, 2: reason}


def test_quote_that_does_not_end_is_reported_and_swallows_no_more_than_a_record() -> None:
    decoder = decoder_of(ImportFormat.UMAMI)
    header, *_ = (SAMPLES / "umami-website_event.csv").read_bytes().split(b"\n")
    lines = [header, b'"', *[b"x" * 10_000] * 8]
    chunk = decoder.decode(LineChunk("a", 1, lines), now_ms=NOW_MS)
    assert refusals(chunk)[9] == "a quoted field does not end; its record begins 7 lines before"
    decoder.decode(LineChunk("a", 11, [b'"']), now_ms=NOW_MS)
    end = decoder.decode(LineChunk("a", 12, []), now_ms=NOW_MS)
    assert refusals(end) == {12: "a quoted field does not end; its record begins 1 line before"}


@pytest.mark.parametrize("line", [b"\xff", b'a,"b"c', b"\0", b",,,,,,,,,,,,,,"])
def test_hostile_lines_are_refused(line: bytes) -> None:
    decoder = decoder_of(ImportFormat.UMAMI)
    header = (SAMPLES / "umami-website_event.csv").read_bytes().split(b"\n")[0]
    chunk = decoder.decode(LineChunk("a", 1, [header, line]), now_ms=NOW_MS)
    assert (chunk.items, sorted(refusals(chunk))) == ([], [2])


EVENT_HEADER = b"event_id,session_id,created_at,url_path,url_query,hostname,page_title"
EVENT = b"e%d,s,2026-01-15 12:00:00,/a,,,%b"


def decode_lines(*lines: bytes) -> DecodedChunk:
    """Decode lines as a file of their own, its end included."""
    decoder = decoder_of(ImportFormat.UMAMI)
    decoded = decoder.decode(LineChunk("a", 1, lines), now_ms=NOW_MS)
    end = decoder.decode(LineChunk("a", 1 + len(lines), []), now_ms=NOW_MS)
    return replace(decoded, refused=[*decoded.refused, *end.refused])


@pytest.mark.parametrize("text", [b'"a\xff\nb"', b'"a\nb\xff"', b'"a\nb\xff\nc"'])
def test_record_that_is_refused_swallows_none_after_it(text: bytes) -> None:
    records = [EVENT % (1, text), EVENT % (2, b"plain"), EVENT % (3, b'"two\nlines"')]
    lines = b"\n".join([EVENT_HEADER, *records]).split(b"\n")
    decoded = decode_lines(*lines)
    assert [row["title"] for row in rows_of(decoded.items)] == ["plain", "two\nlines"]
    lines_before = text.count(b"\n")
    unit = "line" if lines_before == 1 else "lines"
    reason = f"it is not UTF-8; its record begins {lines_before} {unit} before"
    assert refusals(decoded) == {2 + lines_before: reason}


def test_records_that_an_odd_quote_joins_are_reported_from_the_first_line() -> None:
    """A program has written a quote as it is, twice."""
    lines = [EVENT % (number, title) for number, title in enumerate((b'7" disc', b"", b'5" disc'))]
    decoded = decode_lines(EVENT_HEADER, *lines, EVENT % (9, b"plain"))
    assert [row["title"] for row in rows_of(decoded.items)] == ["plain"]
    reason = "it is no CSV: new-line character seen in unquoted field"
    assert refusals(decoded) == {4: f"{reason}; its record begins 2 lines before"}


def test_null_of_clickhouse_is_no_text() -> None:
    decoded = decode_lines(EVENT_HEADER, rb"e,s,2026-01-15 12:00:00,/a,\N,shop.example,\N")
    (row,) = rows_of(decoded.items)
    assert without_keys(dict(row)) == {
        "event_name": "screen_view",
        "anonymous_id": "s",
        "session_id": "s",
        "url": "https://shop.example/a",
        "path": "/a",
    }


@pytest.mark.parametrize(
    "insert",
    [
        b"INSERT INTO public.website_event VALUES ('e', 's');",
        b"INSERT INTO public.website_event (event_id) VALUES",
        b'INSERT INTO "public"."session" VALUES (\'s\');',
        b"INSERT INTO `website_event` VALUES ('e','s'),('f','s');",
        b"INSERT  IGNORE INTO `website_event` VALUES ('e','s');",
        b"REPLACE INTO `umami-2`.`website_event` VALUES ('e','s');",
    ],
)
@pytest.mark.parametrize("before", [b"", b"-- MySQL dump 10.13", b"-- PostgreSQL database dump"])
def test_inserts_of_dumps_are_refused(before: bytes, insert: bytes) -> None:
    decoded = decode_lines(before, b"INSERT INTO public.website VALUES ('w');", insert)
    assert refusals(decoded) == {
        3: "INSERT is not read: dump with pg_dump, without --inserts, or export CSV"
    }


def test_csv_can_begin_with_empty_lines() -> None:
    decoded = decode_lines(b"", b"\r", EVENT_HEADER, EVENT % (1, b"a"))
    assert ([row["title"] for row in rows_of(decoded.items)], refusals(decoded)) == (["a"], {})


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "schema": lambda dump: dump.replace(b"COPY public.", b'COPY "umami-2".'),
    "Windows": lambda dump: dump.replace(b"\n", b"\r\n"),
    "empty line": lambda dump: b"\n" + dump,
}


@pytest.mark.parametrize("change", FORMS.values(), ids=FORMS)
def test_dump_in_another_form_has_the_same_rows(change: Callable[[bytes], bytes]) -> None:
    dump = (SAMPLES / "umami-dump.sql").read_bytes()
    whole, changed = (decode_lines(*content.split(b"\n")[:-1]) for content in (dump, change(dump)))
    assert refusals(changed) == {}
    assert len(whole.items) == 1
    assert rows_of(changed.items) == rows_of(whole.items)


def test_dump_without_the_tables_is_reported() -> None:
    decoded = decode_lines(
        b"-- PostgreSQL database dump",
        b"COPY public.website (website_id) FROM stdin;",
        b"w",
        rb"\.",
    )
    assert refusals(decoded) == {5: "the dump has neither website_event nor session"}


def test_dump_that_ends_in_the_middle_of_a_table_is_reported() -> None:
    whole = (SAMPLES / "umami-dump.sql").read_bytes().split(b"\n")
    end = whole.index(rb"\.", whole.index(rb"\.") + 1)
    assert refusals(decode_lines(*whole)) == {}
    assert refusals(decode_lines(*whole[:end])) == {
        1 + end: "the dump ends in the middle of a table"
    }


@pytest.mark.parametrize(
    "header",
    [
        b"session_data_id,website_id,session_id,data_key,string_value,created_at",
        b"session_id,value",
        b"event_id,created_at,url_path",
    ],
)
def test_file_of_another_table_is_refused_and_takes_no_session_away(header: bytes) -> None:
    decoder = decoder_of(ImportFormat.UMAMI)
    sessions = [b"session_id,country", b"s,FR"]
    decoder.decode(LineChunk("session.csv", 1, sessions), now_ms=NOW_MS)
    values = b",".join([b"s"] * (header.count(b",") + 1))
    other = decoder.decode(LineChunk("other.csv", 1, [header, values]), now_ms=NOW_MS)
    assert refusals(other)[1] == (
        "it belongs neither to website_event nor to session: a header must name columns"
    )
    assert not is_session_file(header)
    events = [EVENT_HEADER, EVENT % (1, b"a")]
    decoded = decoder.decode(LineChunk("website_event.csv", 1, events), now_ms=NOW_MS)
    assert [row["country"] for row in rows_of(decoded.items)] == ["FR"]
