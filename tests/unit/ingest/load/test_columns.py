"""From an event to a row: every rule that maps records to columns."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
import pytest

from headrace.adapters.memory.store import MemoryStore, Row
from headrace.base.clock import utc_datetime
from headrace.formats.arrow_batch import write_stream
from headrace.formats.event_ids import keyed_digests
from headrace.formats.row_ids import log_number, row_ids
from headrace.ingest.load.batch import Batch, group_by_kind
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.columns import TABLE_MAPPINGS
from headrace.ingest.load.deduplicate import deduplicate
from headrace.model.catalog import PROMOTED_COLUMNS, Kind
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    ErrorEvent,
    ErrorRecord,
    Event,
    EventKind,
    EventRecord,
    LogRecord,
    Visitor,
    Vital,
    VitalRecord,
)
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.event_log import LoggedRecord, LogOffset

NOON = 1_700_000_000_123
LATER = NOON + 456
VISITOR = Visitor("DE", "Berlin", "Berlin", "Chrome", "120.0", "macOS", "14.1", "desktop")
BOT = Visitor("US", "", "", "Googlebot", "2.1", "", "", "bot", is_bot=True)


def gathered(content: LogRecord, *, offset: int = 30) -> ReadRecord:
    start, end = LogOffset(1, offset), LogOffset(1, offset + 500)
    return ReadRecord("worker-0", LoggedRecord(b"", start, end), content.received_ms, content)


def rows_of(*records: LogRecord) -> Mapping[str, list[Row]]:
    """Convert records to columns and Arrow, and decode the rows by table."""
    gathering = [gathered(record, offset=30 + 500 * n) for n, record in enumerate(records)]
    dedup = deduplicate(gathering, lambda _: {})
    store = MemoryStore()
    for event_kind, batch in group_by_kind(gathering, dedup, identity="ledger").items():
        table = TABLE_MAPPINGS[event_kind].table
        arrow = write_stream(STORAGE_TABLES[table.name], TABLE_MAPPINGS[event_kind].columns(batch))
        store.insert(table, arrow, token=event_kind.value)
    return store.rows


def event_row(**fields: Any) -> Row:
    """Return the row of one event; `properties` may be an object."""
    if not isinstance(fields.get("properties", b""), bytes):
        fields["properties"] = msgspec.json.encode(fields["properties"])
    given: dict[str, Any] = {"name": "signup", **fields}
    (row,) = rows_of(EventRecord(LATER, VISITOR, [Event("web_a", NOON, **given)]))["events"]
    return row


def columns_of(row: Row, *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_event_without_anything_optional_has_empty_texts_and_null_numbers() -> None:
    event = Event("web_a", NOON, "signup")
    (row,) = rows_of(EventRecord(LATER, UNKNOWN_VISITOR, [event]))["events"]
    given = {
        "website_id": "web_a",
        "event_name": "signup",
        "time": utc_datetime(NOON),
        "received_at": utc_datetime(LATER),
        "is_bot": False,
        "properties": b"",
    }
    assert {name: row[name] for name in given} == given
    missing = {Kind.TEXT: "", Kind.NUMBER: None, Kind.DIGEST: bytes(8)}
    for column in STORAGE_TABLES["events"].columns:
        if column.name not in given and column.name != "id":
            assert row[column.name] == missing[column.kind], column.name


def test_event_keeps_its_fields() -> None:
    row = event_row(
        name="purchase",
        anonymous_id="anon_1",
        session_id="sess_1",
        namespace="shop",
        source="server",
        properties={"plan": "pro", "nested": {"a": [1]}},
    )
    assert columns_of(
        row, "event_name", "anonymous_id", "session_id", "namespace", "source", "properties"
    ) == (
        "purchase",
        "anon_1",
        "sess_1",
        "shop",
        "server",
        b'{"plan":"pro","nested":{"a":[1]}}',
    )


def test_record_visitor_is_in_every_row_unless_the_item_has_one() -> None:
    items = [Event("web_a", NOON, "a"), Event("web_a", NOON, "b", visitor=BOT)]
    rows = rows_of(EventRecord(LATER, VISITOR, items))["events"]
    names = Visitor.__struct_fields__
    assert [columns_of(row, *names) for row in rows] == [
        msgspec.structs.astuple(VISITOR),
        msgspec.structs.astuple(BOT),
    ]


def test_visitors_of_several_records_are_in_their_rows() -> None:
    records = [
        EventRecord(LATER, visitor, [Event("web_a", NOON, "a")] * 2)
        for visitor in (VISITOR, UNKNOWN_VISITOR, BOT, VISITOR)
    ]
    rows = rows_of(*records)["events"]
    assert [columns_of(row, *Visitor.__struct_fields__) for row in rows] == [
        msgspec.structs.astuple(record.visitor) for record in records for _ in range(2)
    ]


def test_every_well_known_property_is_promoted_and_stays_in_properties() -> None:
    properties: dict[str, Any] = {
        column.name: f"a {column.name}" if column.kind is Kind.TEXT else number + 0.5
        for number, column in enumerate(PROMOTED_COLUMNS)
    }
    row = event_row(properties=properties)
    assert {name: row[name] for name in properties} == properties
    assert msgspec.json.decode(row["properties"]) == properties


def test_top_level_of_a_page_view_is_promoted() -> None:
    promoted = {"title": "Pricing", "language": "en-US", "time_on_page": 12, "value": 9.5}
    row = event_row(promoted=promoted)
    assert {name: row[name] for name in promoted} == promoted
    assert row["properties"] == b""


def test_top_level_wins_over_the_properties() -> None:
    row = event_row(
        path="/top",
        url="https://example.com/top",
        promoted={"title": "Top", "value": 1},
        properties={
            "path": "/property",
            "url": "https://example.com/property",
            "title": "Property",
            "value": 2,
            "language": "de",
        },
    )
    assert columns_of(row, "path", "url", "title", "value", "language") == (
        "/top",
        "https://example.com/top",
        "Top",
        1.0,
        "de",
    )


NOT_PROMOTED = [
    pytest.param("title", 5, id="number-for-text"),
    pytest.param("title", True, id="boolean-for-text"),
    pytest.param("title", None, id="null-for-text"),
    pytest.param("title", ["a"], id="list-for-text"),
    pytest.param("path", {"a": 1}, id="object-for-path"),
    pytest.param("url", 7, id="number-for-url"),
    pytest.param("value", "49.5", id="numeric-text-for-number"),
    pytest.param("value", True, id="boolean-for-number"),
    pytest.param("value", None, id="null-for-number"),
    pytest.param("value", [1], id="list-for-number"),
    pytest.param("value", 10**400, id="number-beyond-all-floats"),
]


@pytest.mark.parametrize(("name", "value"), NOT_PROMOTED)
def test_property_of_the_wrong_type_is_not_promoted_and_the_others_are(
    name: str, value: object
) -> None:
    row = event_row(properties={name: value, "language": "de", "ttfb": 3})
    assert columns_of(row, name, "language", "ttfb") == (
        None if name == "value" else "",
        "de",
        3.0,
    )


@pytest.mark.parametrize("text", ["1e400", "-1e400"], ids=["infinite", "minus-infinite"])
def test_non_finite_number_is_not_promoted(text: str) -> None:
    row = event_row(properties=b'{"value":' + text.encode() + b',"ttfb":3,"title":"a"}')
    assert columns_of(row, "value", "ttfb", "title") == (None, 3.0, "a")


NUMBERS = [
    pytest.param(b"0", 0.0, id="zero"),
    pytest.param(b"-1", -1.0, id="negative"),
    pytest.param(b"1e3", 1000.0, id="exponent"),
    pytest.param(b"123456789012345678901234567890", 1.2345678901234568e29, id="long-integer"),
]


@pytest.mark.parametrize(("text", "number"), NUMBERS)
@pytest.mark.parametrize("beside", [b"", b',"title":null'], ids=["fast-way", "careful-way"])
def test_json_number_is_promoted(text: bytes, number: float, beside: bytes) -> None:
    assert event_row(properties=b'{"value":' + text + beside + b"}")["value"] == number


def test_of_a_repeated_key_the_last_is_promoted() -> None:
    assert event_row(properties=b'{"title":"first","title":"last"}')["title"] == "last"


def test_nested_keys_are_not_promoted() -> None:
    assert event_row(properties={"page": {"title": "inner"}, "a.title": "dotted"})["title"] == ""


CUT = [
    pytest.param("language", 256, id="column-without-a-limit-of-its-own"),
    pytest.param("utm_source", 256, id="utm"),
    pytest.param("title", 512, id="title"),
    pytest.param("referrer", 2048, id="referrer"),
    pytest.param("path", 2048, id="path"),
]


@pytest.mark.parametrize(("name", "limit"), CUT)
@pytest.mark.parametrize("where", ["properties", "promoted"])
def test_promoted_text_is_truncated_in_code_points_in_the_column_only(
    name: str, limit: int, where: str
) -> None:
    text = "é😀" * limit
    row = event_row(**{where: {name: text}})
    assert row[name] == text[:limit]
    if where == "properties":
        assert msgspec.json.decode(row["properties"]) == {name: text}


def test_text_of_exactly_its_limit_is_not_truncated() -> None:
    assert event_row(properties={"title": "é" * 512})["title"] == "é" * 512


PAGES = [
    pytest.param("/pricing", "", "/pricing", "", id="plain-path"),
    pytest.param("/a?b=1#c", "", "/a?b=1#c", "", id="path-with-query-is-stored-as-sent"),
    pytest.param("pricing", "", "pricing", "", id="any-other-text-is-stored-as-sent"),
    pytest.param("", "", "", "", id="neither"),
    pytest.param(
        "https://example.com/a/b?x=1#y",
        "",
        "/a/b",
        "https://example.com/a/b?x=1#y",
        id="absolute-path-is-split",
    ),
    pytest.param("http://example.com/a", "", "/a", "http://example.com/a", id="http"),
    pytest.param("HTTP://example.com/a", "", "/a", "HTTP://example.com/a", id="HTTP"),
    pytest.param("Https://example.com/a", "", "/a", "Https://example.com/a", id="Https"),
    pytest.param(
        "https://example.com/a%20b/%C3%A9",
        "",
        "/a%20b/%C3%A9",
        "https://example.com/a%20b/%C3%A9",
        id="path-stays-percent-encoded",
    ),
    pytest.param(
        "https://example.com", "", "/", "https://example.com", id="host-alone-is-its-root"
    ),
    pytest.param(
        "https://example.com?a=/b", "", "/", "https://example.com?a=/b", id="query-behind-the-host"
    ),
    pytest.param(
        "https://example.com#/route", "", "/", "https://example.com#/route", id="fragment-route"
    ),
    pytest.param(
        "https://example.com/a",
        "https://example.org/given",
        "/a",
        "https://example.org/given",
        id="given-url-stays",
    ),
    pytest.param(
        "/given", "https://example.com/a", "/given", "https://example.com/a", id="both-given"
    ),
    pytest.param("", "https://example.com/a?b#c", "/a", "https://example.com/a?b#c", id="only-url"),
    pytest.param("", "/a?b=1", "/a", "/a?b=1", id="only-a-relative-url"),
    pytest.param("", "//example.com/a", "/a", "//example.com/a", id="only-url-without-scheme"),
    pytest.param("", "app://screen/home", "/home", "app://screen/home", id="url-of-an-app"),
    pytest.param("https:/a", "", "https:/a", "", id="no-absolute-url"),
    pytest.param("/a/https://b", "", "/a/https://b", "", id="url-inside-a-path"),
]


@pytest.mark.parametrize(("path", "url", "stored_path", "stored_url"), PAGES)
def test_path_and_url_of_an_event(path: str, url: str, stored_path: str, stored_url: str) -> None:
    expected = (stored_path, stored_url)
    assert columns_of(event_row(path=path, url=url), "path", "url") == expected
    in_properties = event_row(properties={"path": path, "url": url})
    assert columns_of(in_properties, "path", "url") == expected


@pytest.mark.parametrize(("path", "url", "stored_path", "stored_url"), PAGES)
def test_path_and_url_of_errors_and_vitals(
    path: str, url: str, stored_path: str, stored_url: str
) -> None:
    rows = rows_of(
        VitalRecord(LATER, VISITOR, [Vital("web_a", NOON, "LCP", 1, path, url)]),
        ErrorRecord(LATER, VISITOR, [ErrorEvent("web_a", NOON, "oops", path, url=url)]),
    )
    for table in ("performance", "errors"):
        (row,) = rows[table]
        assert columns_of(row, "path", "url") == (stored_path, stored_url)


def test_path_comes_from_the_full_url_even_if_the_column_is_truncated() -> None:
    url = "https://example.com/" + "a" * 3000 + "?utm_source=news"
    row = event_row(properties={"url": url})
    assert columns_of(row, "path", "url", "utm_source") == (
        "/" + "a" * 2047,
        url[:2048],
        "news",
    )


CAMPAIGNS = [
    pytest.param("utm_source=a+b%20c%26", "a b c&", id="form-decoded"),
    pytest.param("utm_source=%C3%A9", "é", id="utf-8"),
    pytest.param("utm_source=%FF", "\ufffd", id="not-utf-8"),
    pytest.param("utm%5Fsource=a", "a", id="encoded-name"),
    pytest.param("x=1&utm_source=a&y=2", "a", id="among-others"),
    pytest.param("utm_source=a&utm_source=b", "a", id="first-of-two"),
    pytest.param("utm_source=a=b", "a=b", id="with-equals"),
    pytest.param("utm_source=", "", id="empty"),
    pytest.param("utm_source", "", id="without-value"),
    pytest.param("UTM_SOURCE=a", "", id="in-capitals"),
    pytest.param("my_utm_source=a", "", id="another-name"),
    pytest.param("utm_source=" + "a" * 300, "a" * 256, id="cut"),
]


@pytest.mark.parametrize(("query", "source"), CAMPAIGNS)
def test_missing_utm_values_come_from_the_query_of_the_url(query: str, source: str) -> None:
    assert event_row(url=f"https://example.com/?{query}#end")["utm_source"] == source


def test_all_utm_values_come_from_the_query() -> None:
    parts = ("source", "medium", "campaign", "term", "content")
    query = "&".join(f"utm_{part}={part}" for part in parts)
    row = event_row(path=f"https://example.com/?{query}")
    assert columns_of(row, *(f"utm_{part}" for part in parts)) == parts


@pytest.mark.parametrize("where", ["properties", "promoted"])
def test_utm_values_that_were_sent_win_over_the_url(where: str) -> None:
    url = "https://example.com/?utm_source=url&utm_medium=url"
    row = event_row(url=url, **{where: {"utm_source": "sent"}})
    assert columns_of(row, "utm_source", "utm_medium") == ("sent", "url")


def test_utm_value_after_the_fragment_is_ignored() -> None:
    assert event_row(url="https://example.com/#?utm_source=a")["utm_source"] == ""


def test_vital_keeps_its_fields() -> None:
    vital = Vital("web_a", NOON, "CLS", 0.25, "/a", "https://example.com/a", "anon_1", "sess_1")
    (row,) = rows_of(VitalRecord(LATER, VISITOR, [vital]))["performance"]
    assert {name: value for name, value in row.items() if name != "id"} == {
        "website_id": "web_a",
        "metric_name": "CLS",
        "path": "/a",
        "url": "https://example.com/a",
        "anonymous_id": "anon_1",
        "session_id": "sess_1",
        **msgspec.structs.asdict(VISITOR),
        "time": utc_datetime(NOON),
        "metric_value": 0.25,
        "event_key": bytes(8),
    }


def test_error_keeps_its_fields() -> None:
    error = ErrorEvent(
        "web_a",
        NOON,
        "oops",
        "/a",
        level="fatal",
        error_type="TypeError",
        filename="app.js",
        lineno=10,
        colno=2.5,
        stack="at a",
        anonymous_id="anon_1",
        session_id="sess_1",
    )
    (row,) = rows_of(ErrorRecord(LATER, VISITOR, [error]))["errors"]
    assert {name: value for name, value in row.items() if name != "id"} == {
        "website_id": "web_a",
        "stack": "at a",
        "message": "oops",
        "level": "fatal",
        "error_type": "TypeError",
        "filename": "app.js",
        "path": "/a",
        "url": "",
        "anonymous_id": "anon_1",
        "session_id": "sess_1",
        **msgspec.structs.asdict(VISITOR),
        "time": utc_datetime(NOON),
        "lineno": 10.0,
        "colno": 2.5,
        "event_key": bytes(8),
    }


def test_long_message_and_stack_are_truncated() -> None:
    error = ErrorEvent("web_a", NOON, "é" * 5000, "/", stack="é" * 70_000)
    (row,) = rows_of(ErrorRecord(LATER, VISITOR, [error]))["errors"]
    assert columns_of(row, "message", "stack") == ("é" * 4096, "é" * 65_536)


def test_text_is_stored_exactly_as_sent() -> None:
    name = ' <b>"quoted"</b>\t\n\\ 😀 '
    row = event_row(name=name, session_id=name, properties={"title": name})
    assert columns_of(row, "event_name", "session_id", "title") == (name, name, name)


def test_ids_are_sixteen_bytes_sort_by_arrival_and_are_the_same_again() -> None:
    record = LoggedRecord(b"", LogOffset(3, 100), LogOffset(3, 400))
    ids = row_ids(7, record, NOON, range(300))
    assert ids == sorted(set(ids))
    assert ids == row_ids(7, record, NOON, range(300))
    assert {len(row_id) for row_id in ids} == {16}
    following = LoggedRecord(b"", LogOffset(3, 400), LogOffset(3, 500))
    assert ids[-1] < row_ids(7, following, NOON, [0])[0]
    assert ids[-1] < row_ids(0, record, NOON + 1, [0])[0]


def test_kept_items_have_the_ids_of_their_offsets() -> None:
    items = [Event("web_a", NOON, name, event_id=f"e-{name}") for name in "abc"]
    records = [gathered(EventRecord(LATER, VISITOR, items))]
    (known,) = keyed_digests(EventKind.EVENTS, items[1:2])

    def stored(expiries: dict[bytes, int]) -> Batch[Any]:
        dedup = deduplicate(records, lambda _: expiries)
        return group_by_kind(records, dedup, identity="ledger")[EventKind.EVENTS]

    every, part = stored({}), stored({known: LATER + 1})
    assert [item.name for item in part.items] == ["a", "c"]
    assert part.ids == [every.ids[0], every.ids[2]]
    assert part.digests == [every.digests[0], every.digests[2]]


@pytest.mark.parametrize("has_api_key", [True, False, None])
def test_row_has_the_key_of_its_event_id_whoever_sent_it(has_api_key: bool | None) -> None:
    items = [Event("web_a", NOON, "a", event_id="e-1"), Event("web_a", NOON, "b")]
    rows = rows_of(EventRecord(LATER, VISITOR, items, has_api_key=has_api_key))["events"]
    digest = blake2b(b"events\0web_a\0e-1", digest_size=16).digest()
    assert [row["event_key"] for row in rows] == [digest[:8], bytes(8)]


def test_log_numbers_differ() -> None:
    logs = [f"worker-{number}" for number in range(64)]
    assert len({log_number("ledger", log) for log in logs}) == 64
    assert log_number("one", "worker-0") != log_number("two", "worker-0")
