"""What the methods of the client send, and which calls they refuse at once."""

import traceback
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest

from headrace_client import Headrace, InvalidItem, with_fields
from headrace_client.testing import FakeHeadrace

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
NOON_MS = 1_777_629_600_000
FIXED: dict[str, Any] = {"timestamp": NOON, "event_id": "id-1"}
AGAIN: dict[str, Any] = {"timestamp": NOON, "event_id": "id-2"}
SENT = {"timestamp": NOON_MS, "eventId": "id-1"}


@pytest.fixture
def client(server: FakeHeadrace) -> Iterator[Headrace]:
    with Headrace(server.url, "key", outbox=None, linger_s=0.0) as one:
        yield one


def test_each_method_sends_its_fields(client: Headrace, server: FakeHeadrace) -> None:
    client.track("a", {"x": 1}, session_id="s", namespace="n", source="b", profile_id="p", **FIXED)
    client.page_view("/pricing", {"referrer": "direct"}, **AGAIN)
    client.vitals("LCP", 1830.5, path="/", **FIXED)
    client.errors("it broke", level="warning", lineno=3, **FIXED)
    client.identify("acc-1", {"plan": "pro"}, anonymous_id="anon_1", **FIXED)
    assert client.flush()

    properties = {"referrer": "direct"}
    view = {"name": "screen_view", "path": "/pricing", "properties": properties}
    fields = {"sessionId": "s", "namespace": "n", "source": "b", "profileId": "p"}
    assert server.items() == [
        {"name": "a", "properties": {"x": 1}, **fields, **SENT},
        {**view, **SENT, "eventId": "id-2"},
    ]
    vital = {"metricName": "LCP", "metricValue": 1830.5, "path": "/"}
    assert server.items("/vitals") == [{**vital, **SENT}]
    error = {"message": "it broke", "path": "", "level": "warning", "lineno": 3}
    assert server.items("/errors") == [{**error, **SENT}]


def test_empty_id_is_replaced_so_that_a_repeat_is_stored_once(
    client: Headrace, server: FakeHeadrace
) -> None:
    server.reply_once(502, stores=True)
    event_id = client.track("a", event_id="")
    assert client.flush()

    assert [one["eventId"] for one in server.items()] == [event_id]
    assert len(event_id) == 36


def test_properties_may_be_any_mapping(client: Headrace, server: FakeHeadrace) -> None:
    frozen = MappingProxyType({"plan": MappingProxyType({"name": "pro"})})
    client.track("a", frozen, **FIXED)
    client.identify("acc-1", frozen, **AGAIN)
    client.query(MappingProxyType({"table": "events"}), last_days=1, website_id="web_1")
    assert client.flush()

    plan = {"plan": {"name": "pro"}}
    assert server.items() == [{"name": "a", "properties": plan, **SENT}]
    assert server.items("/identify") == [
        {"profileId": "acc-1", "traits": plan, **SENT, "eventId": "id-2"}
    ]
    assert server.queries == [{"query": {"table": "events"}, "lastDays": 1}]


def test_account_of_a_visitor_is_sent_alone(client: Headrace, server: FakeHeadrace) -> None:
    client.identify("acc-1", {"plan": "pro"}, anonymous_id="anon_1", **FIXED)
    client.identify("acc-2", **AGAIN)
    assert client.flush()

    first = {"profileId": "acc-1", "traits": {"plan": "pro"}, "anonymousId": "anon_1"}
    assert server.items("/identify") == [
        {**first, **SENT},
        {"profileId": "acc-2", **SENT, "eventId": "id-2"},
    ]
    assert server.requests == [("/identify", 1)] * 2


def test_exception_gives_type_stack_and_line(client: Headrace, server: FakeHeadrace) -> None:
    def fail() -> None:
        raise InvalidItem("broken")

    try:
        fail()
    except InvalidItem as error:
        client.errors(error, **FIXED)
    assert client.flush()

    (item,) = server.items("/errors")
    first_line = fail.__code__.co_firstlineno
    assert (item["message"], item["errorType"]) == ("broken", "headrace_client.errors.InvalidItem")
    assert (item["filename"], item["lineno"]) == (__file__, first_line + 1)
    assert item["stack"].endswith("headrace_client.errors.InvalidItem: broken\n")


def test_error_with_an_empty_text_is_reported_without_a_message(
    client: Headrace, server: FakeHeadrace
) -> None:
    client.errors("")
    client.errors(ValueError())
    assert client.flush()

    assert [item["message"] for item in server.items("/errors")] == ["", "ValueError"]


def test_message_and_stack_are_cut_to_what_the_service_keeps(
    client: Headrace, server: FakeHeadrace
) -> None:
    client.errors(ValueError("x" * 100_000))
    client.errors("y" * 100_000, stack="z" * 100_000)
    assert client.flush()

    sent = [(item["message"], item["stack"]) for item in server.items("/errors")]
    assert sent == [
        ("x" * 4096, ("ValueError: " + "x" * 100_000)[:65_536]),
        ("y" * 4096, "z" * 65_536),
    ]


class Textless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "message", "last_line"),
    [
        (FileNotFoundError("no \udcff"), "no \\udcff", "FileNotFoundError: no \\udcff\n"),
        (ValueError("a\0b"), "a\\x00b", "ValueError: a\\x00b\n"),
        (Textless(), "Textless", f"{__name__}.Textless: <exception str() failed>\n"),
    ],
    ids=["surrogate", "nul", "text that fails"],
)
def test_exception_with_an_odd_text_is_reported(
    client: Headrace, server: FakeHeadrace, error: Exception, message: str, last_line: str
) -> None:
    client.errors(error)
    assert client.flush()

    sent = [(item["message"], item["stack"]) for item in server.items("/errors")]
    assert sent == [(message, last_line)]


def test_website_of_a_call_wins_over_that_of_its_context_and_of_the_client(
    server: FakeHeadrace,
) -> None:
    with Headrace(server.url, outbox=None, website_id="client", linger_s=0.0) as client:
        client.track("a")
        with with_fields(website_id="context", ip="198.51.100.1", user_agent=None):
            client.track("b")
            client.track("c", website_id="call")
        client.track("d", website_id=None)
        assert client.flush()

    fields = {
        one["name"]: {k: v for k, v in one.items() if k in {"websiteId", "ip", "userAgent"}}
        for one in server.items()
    }
    assert fields == {
        "a": {"websiteId": "client"},
        "b": {"websiteId": "context", "ip": "198.51.100.1"},
        "c": {"websiteId": "call", "ip": "198.51.100.1"},
        "d": {"websiteId": "client"},
    }


def test_unknown_field_is_an_error_that_names_the_likely_one(client: Headrace) -> None:
    fields: dict[str, Any] = {"anonymousid": "anon_1"}
    with pytest.raises(TypeError, match=r"no field 'anonymousid' \(did you mean 'anonymous_id'\?"):
        client.track("a", **fields)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"x": object()}, "cannot be written as JSON"),
        ({"x": "\ud800"}, "cannot be written as JSON"),
        ({1j: 1}, "cannot be written as JSON"),
    ],
    ids=["object", "lone surrogate", "key"],
)
def test_properties_that_are_no_json_are_refused_at_once(
    client: Headrace, properties: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidItem, match=message):
        client.track("a", properties)
    assert client.stats().pending == 0


def test_timestamp_of_a_date_is_exact_to_the_millisecond(
    client: Headrace, server: FakeHeadrace
) -> None:
    client.track("a", timestamp=datetime(2004, 2, 17, 6, 27, 29, 11_000, tzinfo=NOON.tzinfo))
    assert client.flush()
    assert server.items()[0]["timestamp"] == 1_076_992_049_011


def test_timestamp_that_is_no_number_is_refused_at_once(client: Headrace) -> None:
    with pytest.raises(InvalidItem, match="the timestamp is nan"):
        client.track("a", timestamp=float("nan"))


def test_timestamp_without_time_zone_is_refused_at_once(client: Headrace) -> None:
    with pytest.raises(InvalidItem, match="has no time zone"):
        client.track("a", timestamp=datetime(2026, 5, 1, 12))  # noqa: DTZ001 - what is tested


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "shop.example", "key": "k"}, "is no address"),
        (
            {"url": "http://shop.example:abc", "key": "k"},
            "is no address of a service: Invalid port",
        ),
        ({"url": "http:///track", "key": "k"}, "has no host, or no valid port"),
        ({"url": "http://shop.example:65536", "key": "k"}, "has no host, or no valid port"),
        ({"url": "http://shop.example?a=b", "key": "k"}, "has a query or a fragment"),
        ({"url": "http://shop.example/#a", "key": "k"}, "has a query or a fragment"),
        (
            {"url": "http://u:p@shop.example", "key": "k"},
            "^the address has a user name or password",
        ),
        ({"url": "http://shop.example", "key": " "}, "key is empty"),
        ({"url": "http://shop.example", "key": "hr_ä"}, "characters that no key has"),
        ({"url": "http://shop.example", "key": "hr_a\nb"}, "characters that no key has"),
        ({"url": "http://shop.example", "key": "hr_a b"}, "characters that no key has"),
        ({"url": "http://shop.example"}, "a key or a website_id"),
        ({"url": "http://shop.example", "key": "k", "synchronous": "off"}, "can be"),
    ],
    ids=[
        "url",
        "port",
        "no host",
        "large port",
        "query",
        "fragment",
        "credentials",
        "empty key",
        "letter",
        "line break",
        "blank",
        "no key",
        "synchronous",
    ],
)
def test_client_with_wrong_arguments_is_not_made(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Headrace(outbox=None, **arguments)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://me:pa55@shop.example/a", "ftp://***@shop.example/a"),
        ("me:pa55@shop.example", "***@shop.example"),
        ("https://me:pa55/7@shop.example", "https://***@shop.example"),
        ("https://me:pa55@8@shop.example?a=b", "https://***@shop.example?***"),
        ("https://shop.example?key=pa55", "https://shop.example?***"),
    ],
    ids=["scheme", "no scheme", "slash", "at sign", "query"],
)
def test_secrets_of_a_wrong_address_are_not_in_its_error(url: str, shown: str) -> None:
    with pytest.raises(ValueError, match="no address of a service") as refusal:
        Headrace(url, outbox=None, website_id="web_1")

    assert str(refusal.value).startswith(f"{shown!r} is no address of a service: ")
    assert "pa55" not in "".join(traceback.format_exception(refusal.value))
