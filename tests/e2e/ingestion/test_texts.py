"""Texts: lengths in code points, exact storage, and characters that are not allowed."""

import json

import pytest

from testing.service import Json, Service, bearer, empty_counts
from tests.e2e.envelopes import (
    ITEMS,
    TABLES,
    TIMESTAMP_MS,
    WEBSITE_NOT_FOUND,
    error_envelope,
    field_errors,
    outcome,
    success,
)

JSON = {"Content-Type": "application/json"}

LIMITED_TEXTS = [
    ("/track", "name", 256, "event_name"),
    ("/track", "anonymousId", 256, "anonymous_id"),
    ("/track", "sessionId", 256, "session_id"),
    ("/track", "namespace", 64, "namespace"),
    ("/track", "source", 64, "source"),
    ("/track", "path", 2048, "path"),
    ("/track", "url", 2048, "url"),
    ("/batch", "name", 256, "event_name"),
    ("/batch", "anonymousId", 256, "anonymous_id"),
    ("/batch", "sessionId", 256, "session_id"),
    ("/batch", "path", 2048, "path"),
    ("/batch", "url", 2048, "url"),
    ("/batch", "title", 512, "title"),
    ("/batch", "referrer", 2048, "referrer"),
    ("/", "title", 512, "title"),
    ("/", "referrer", 2048, "referrer"),
    ("/vitals", "path", 2048, "path"),
    ("/vitals", "url", 2048, "url"),
    ("/vitals", "anonymousId", 256, "anonymous_id"),
    ("/vitals", "sessionId", 256, "session_id"),
    ("/errors", "path", 2048, "path"),
    ("/errors", "url", 2048, "url"),
    ("/errors", "filename", 2048, "filename"),
    ("/errors", "errorType", 128, "error_type"),
    ("/errors", "anonymousId", 256, "anonymous_id"),
    ("/errors", "sessionId", 256, "session_id"),
]
TEXT_IDS = [f"{endpoint} {field}" for endpoint, field, _, _ in LIMITED_TEXTS]


@pytest.mark.parametrize("character", ["x", "ß", "😀"], ids=["ASCII", "two bytes", "four bytes"])
@pytest.mark.parametrize(("endpoint", "field", "limit", "column"), LIMITED_TEXTS, ids=TEXT_IDS)
def test_text_at_its_limit_in_code_points_is_stored_untruncated(
    service: Service,
    limits_website: str,
    *,
    endpoint: str,
    field: str,
    limit: int,
    column: str,
    character: str,
) -> None:
    text = character * limit
    before = service.counts(limits_website, TABLES[endpoint], column).get(text, 0)

    response = service.post(
        f"{endpoint}?client_id={limits_website}", {**ITEMS[endpoint], field: text}
    )

    assert outcome(response) == (200, success(endpoint))
    stored = service.counts(limits_website, TABLES[endpoint], column)
    assert stored[text] == before + 1


@pytest.fixture(scope="module")
def limits_website(service: Service) -> str:
    return service.website()


@pytest.mark.parametrize("character", ["x", "😀"], ids=["ASCII", "four bytes"])
@pytest.mark.parametrize(("endpoint", "field", "limit", "column"), LIMITED_TEXTS, ids=TEXT_IDS)
def test_text_over_its_limit_is_400(
    service: Service,
    quiet_website: str,
    *,
    endpoint: str,
    field: str,
    limit: int,
    column: str,
    character: str,
) -> None:
    item = {**ITEMS[endpoint], field: character * (limit + 1)}

    response = service.post(f"{endpoint}?client_id={quiet_website}", item)

    assert field_errors(response) == [(0, field)]
    assert service.count(quiet_website, TABLES[endpoint]) == 0, column


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch", "/"])
def test_website_id_of_255_is_looked_up_and_a_longer_one_is_400(
    service: Service, endpoint: str
) -> None:
    looked_up = service.post(endpoint, {**ITEMS[endpoint], "websiteId": "w" * 255})
    rejected = service.post(endpoint, {**ITEMS[endpoint], "websiteId": "w" * 256})

    assert error_envelope(looked_up) == WEBSITE_NOT_FOUND
    assert field_errors(rejected) == [(0, "websiteId")]


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch", "/"])
def test_event_id_of_512_is_accepted_and_a_longer_one_is_400(
    service: Service, website: str, endpoint: str
) -> None:
    path = f"{endpoint}?client_id={website}"

    taken = service.post(path, {**ITEMS[endpoint], "eventId": "e" * 512})
    rejected = service.post(path, {**ITEMS[endpoint], "eventId": "e" * 513})

    assert outcome(taken) == (200, success(endpoint, event_ids=("e" * 512,)))
    assert field_errors(rejected) == [(0, "eventId")]


@pytest.mark.parametrize("endpoint", ["/track", "/vitals", "/errors", "/batch", "/"])
def test_user_agent_of_2048_is_accepted_with_a_key_and_a_longer_one_is_400(
    service: Service, website: str, endpoint: str
) -> None:
    path, headers = f"{endpoint}?client_id={website}", bearer(service.master)

    taken = service.post(path, {**ITEMS[endpoint], "userAgent": "u" * 2048}, headers=headers)
    rejected = service.post(path, {**ITEMS[endpoint], "userAgent": "u" * 2049}, headers=headers)

    assert outcome(taken) == (200, success(endpoint))
    assert field_errors(rejected) == [(0, "userAgent")]


@pytest.mark.parametrize(
    ("field", "limit", "column"),
    [("message", 4096, "message"), ("stack", 65_536, "stack")],
    ids=["message", "stack"],
)
@pytest.mark.parametrize("character", ["x", "😀"], ids=["ASCII", "four bytes"])
def test_long_error_text_is_truncated_and_not_rejected(
    service: Service, website: str, *, field: str, limit: int, column: str, character: str
) -> None:
    text = character * (limit + 100)

    response = service.post(f"/errors?client_id={website}", {**ITEMS["/errors"], field: text})

    assert outcome(response) == (200, success("/errors"))
    assert service.row(website, "errors", [column]) == {column: character * limit}


AS_SENT = {
    "blanks": "  two  blanks  ",
    "tabs and line ends": "a\tb\r\nc\n",
    "double quotes": '"quoted"',
    "single quotes": "'quoted'",
    "backslashes": r"C:\temp\new \\ \n \0 \N",
    "tags": "<script>alert('x')</script>",
    "entities": "&lt;b&gt; &amp;",
    "SQL": "'; DROP TABLE events; --",
    "wildcards": "100%_\\%",
    "braces": "{name:String} {} ${x}",
    "percent": "%20 %s %%",
    "control characters": "\x01\x08\x0b\x0c\x1f\x7f\x80\x9f",
    "combining": "e\u0301 \u00e9",  # no normalization
    "not composed": "\u212b \u00c5",
    "right to left": "\u202eabc \u05d0",
    "zero width": "a\u200bb\ufeffc",
    "beyond the basic plane": "😀\U0001d4b3\U0010ffff",
    "noncharacter": "\ufffe\uffff",
    "line separators": "a\u2028b\u2029c",
    "null in words": "null \\N NULL",
}


@pytest.mark.parametrize("text", AS_SENT.values(), ids=AS_SENT)
def test_text_is_stored_exactly_as_sent(service: Service, website: str, text: str) -> None:
    event: Json = {"name": text, "namespace": text, "anonymousId": text, "sessionId": text}
    event |= {"source": text, "path": text, "properties": {"p": text, "list": [text]}}
    error = {"timestamp": TIMESTAMP_MS, "path": text, "message": text, "stack": text}
    error |= {"filename": text, "errorType": text}

    service.post(f"/track?website_id={website}", event)
    service.post(f"/errors?client_id={website}", error)

    columns = ["event_name", "namespace", "anonymous_id", "session_id", "source", "path"]
    columns += ["properties.p", "properties.list"]
    listed = json.dumps([text], ensure_ascii=False, separators=(",", ":"))
    row = service.row(website, "events", columns)
    assert json.loads(row.pop("properties.list")) == json.loads(listed)
    assert row == dict.fromkeys(columns[:-1], text)
    error_columns = ["path", "message", "stack", "filename", "error_type"]
    assert service.row(website, "errors", error_columns) == dict.fromkeys(error_columns, text)


@pytest.mark.parametrize("bad", [r"\u0000", r"\ud800", r"\udc00", r"\udc00\ud800"])
@pytest.mark.parametrize(
    ("body", "index", "field"),
    [
        ('{"name":"a%sb"}', 0, "name"),
        ('{"name":"a","anonymousId":"%s"}', 0, "anonymousId"),
        ('{"name":"a","properties":{"p":"%s"}}', 0, "properties"),
        ('{"name":"a","properties":{"%s":1}}', 0, "properties"),
        ('{"name":"a","properties":{"deep":[{"er":["x","%s"]}]}}', 0, "properties"),
        ('{"name":"a","unknown":"%s"}', 0, ""),
        ('{"name":"a","unknown":{"deep":["%s"]}}', 0, ""),
        ('{"name":"a","%s":1}', 0, ""),
        ('[{"name":"fine"},{"name":"a%sb"}]', 1, "name"),
        ('{"name":"a%sb","name":"a"}', 0, ""),
    ],
    ids=[
        "name",
        "anonymousId",
        "property",
        "property's key",
        "deep in properties",
        "unknown key's value",
        "deep under an unknown key",
        "unknown key",
        "second item",
        "overridden by a repeated key",
    ],
)
def test_nul_and_lone_surrogates_are_400_anywhere(
    service: Service, quiet_website: str, *, body: str, index: int, field: str, bad: str
) -> None:
    with empty_counts(service, quiet_website):
        response = service.post(
            f"/track?website_id={quiet_website}", data=body.replace("%s", bad), headers=JSON
        )

        assert field_errors(response) == [(index, field)]


def test_escaped_pair_of_surrogates_is_one_character(service: Service, website: str) -> None:
    body = rb'{"name":"\ud83d\ude00","properties":{"p":"\ud83d\ude00"}}'

    service.post(f"/track?website_id={website}", data=body, headers=JSON)

    row = service.row(website, "events", ["event_name", "properties.p"])
    assert row == {"event_name": "😀", "properties.p": "😀"}


@pytest.mark.parametrize(
    "body", [rb'{"name":"a\\u0000b"}', rb'{"name":"a\\ud800b"}'], ids=["NUL", "surrogate"]
)
def test_escaped_backslash_before_u_is_no_escape(
    service: Service, website: str, body: bytes
) -> None:
    response = service.post(f"/track?website_id={website}", data=body, headers=JSON)

    assert outcome(response) == (200, success("/track"))
    expected = json.loads(body)["name"]
    assert service.row(website, "events", ["event_name"]) == {"event_name": expected}


MANY_KEYS = {f"key{number}": number for number in range(2000)}
PROPERTY_VALUES: dict[str, tuple[Json, Json]] = {
    "text": ("a", "a"),
    "empty text": ("", ""),
    "text of a number": ("5", "5"),
    "whole number": (5, 5),
    "negative": (-7, -7),
    "fraction": (1.5, 1.5),
    "greatest 64-bit": (9_223_372_036_854_775_807, 9_223_372_036_854_775_807),
    "2 to the 64th": (18_446_744_073_709_551_616, 18_446_744_073_709_551_616),
    "least 64-bit": (-9_223_372_036_854_775_808, -9_223_372_036_854_775_808),
    "great": (1.5e300, 1.5e300),
    "small": (5e-324, 5e-324),
    "true": (True, True),
    "false": (False, False),
    "null": (None, None),
    "object": ({"b": 1, "a": [1, 2]}, '{"b":1,"a":[1,2]}'),
    "array": ([1, "two", None, {"three": 3}], '[1,"two",null,{"three":3}]'),
    "empty object": ({}, "{}"),
    "empty array": ([], "[]"),
    "arrays in arrays": ([[[[]]]], "[[[[]]]]"),
    "object with an empty key": ({"": 1}, '{"":1}'),
    "object with many keys": (MANY_KEYS, json.dumps(MANY_KEYS, separators=(",", ":"))),
    "long text": ("x" * 1_000_000, "x" * 1_000_000),
}


@pytest.mark.parametrize(("sent", "stored"), PROPERTY_VALUES.values(), ids=PROPERTY_VALUES)
def test_property_is_kept_as_sent(service: Service, website: str, sent: Json, stored: Json) -> None:
    service.post(f"/track?website_id={website}", {"name": "a", "properties": {"p": sent}})

    row = service.row(website, "events", ["properties.p"])
    assert row == {"properties.p": stored}
    assert type(row["properties.p"]) is type(stored)


PROPERTY_KEYS = {
    "dot": ("a.b", {"a.b": 1}),
    "nested": ("a.b", {"a": {"b": 1}}),
    "dot before nested": ("a.b", {"a": {"b": 2}, "a.b": 1}),
    "blank": ("a b", {"a b": 1}),
    "quote": ("a'b\"c", {"a'b\"c": 1}),
    "backslash": ("a\\b", {"a\\b": 1}),
    "not ASCII": ("größe😀", {"größe😀": 1}),
    "of 256": ("k" * 256, {"k" * 256: 1}),
    "column's name": ("event_name", {"event_name": 1}),
}


@pytest.mark.parametrize(("key", "properties"), PROPERTY_KEYS.values(), ids=PROPERTY_KEYS)
def test_property_is_found_by_its_key(
    service: Service, website: str, key: str, properties: Json
) -> None:
    service.post(f"/track?website_id={website}", {"name": "a", "properties": properties})

    assert service.row(website, "events", [f"properties.{key}"]) == {f"properties.{key}": 1}
