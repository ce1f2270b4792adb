"""How requests are written, when they are repeated, and what an outbox writes to disk."""

import gzip
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from headrace_client import Headrace, QueryUnavailable
from headrace_client.delivery.backoff import Backoff, retry_after_s
from headrace_client.delivery.database import Database
from headrace_client.delivery.in_flight import InFlight
from headrace_client.delivery.poster import Failed, ItemPoster
from headrace_client.items import Endpoint
from headrace_client.testing import FakeHeadrace

SUCCESS = {"status": "success", "type": "custom_event", "count": 1}
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


URL = "https://events.example/base/"


def requests_of(
    client_options: dict[str, Any], *properties: str, url: str = URL
) -> list[httpx.Request]:
    """Return the requests of a client that reports an event with each of the texts."""
    sent: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json=SUCCESS)

    def make_http_client() -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(respond))

    with Headrace(url, outbox=None, make_http_client=make_http_client, **client_options) as client:
        for text in properties:
            client.track("a", {"text": text})
            assert client.flush()
    return sent


def test_small_request_is_plain_json_with_the_key() -> None:
    (request,) = requests_of({"key": " hr_1 "}, "x")

    headers = {name: request.headers.get(name) for name in ("Authorization", "Content-Encoding")}
    assert (str(request.url), headers) == (
        "https://events.example/base/track",
        {"Authorization": "Bearer hr_1", "Content-Encoding": None},
    )
    assert request.headers["Content-Type"] == "application/json"
    assert json.loads(request.content)[0]["properties"] == {"text": "x"}


def test_large_request_is_compressed() -> None:
    (request,) = requests_of({"key": "k"}, "x" * 2000)

    assert request.headers["Content-Encoding"] == "gzip"
    assert len(request.content) < 500
    body = json.loads(gzip.decompress(request.content))
    assert body[0]["properties"] == {"text": "x" * 2000}


def test_request_without_a_key_names_the_website_in_its_items() -> None:
    (request,) = requests_of({"website_id": "web_1"}, "x")

    assert "Authorization" not in request.headers
    assert json.loads(request.content)[0]["websiteId"] == "web_1"


def test_credentials_of_the_address_are_sent_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    address = "https://me:s%40cret@events.example/base/"
    (request,) = requests_of({"website_id": "web_1"}, "x", url=address)

    assert str(request.url) == "https://events.example/base/track"
    assert request.headers["Authorization"] == "Basic bWU6c0BjcmV0"
    assert "cret" not in caplog.text


def test_client_does_not_show_its_key() -> None:
    with Headrace("https://events.example", "hr_secret", outbox=None) as client:
        assert "secret" not in repr(client) + repr(client.query_client)


@pytest.mark.parametrize(
    ("proxy", "reason"),
    [("foo://x", "ValueError: Unknown scheme"), ("http://x:y", "InvalidURL: Invalid port: 'y'")],
)
def test_items_wait_where_a_proxy_variable_is_wrong(
    server: FakeHeadrace, monkeypatch: pytest.MonkeyPatch, proxy: str, reason: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with Headrace(server.url, "key", outbox=None, website_id="web_1", linger_s=0.0) as client:
        client.track("a")
        while not client.stats().last_error:
            time.sleep(0.01)
        assert reason in client.stats().last_error
        with pytest.raises(QueryUnavailable, match=f"variables of the environment name: {reason}"):
            client.query({})

        monkeypatch.delenv("HTTP_PROXY")
        assert client.flush()
    assert server.event_names() == ["a"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("7", 7),
        (" 0 ", 0),
        ("100000", 600),
        ("Fri, 01 May 2026 12:00:30 GMT", 30),
        ("Fri, 01 May 2026 12:00:30 -0000", 30),
        ("Fri, 01 May 2026 11:00:00 GMT", 0),
        ("Sat, 02 May 2026 12:00:00 GMT", 600),
        ("Sat, 02 May 10000 12:00:00 GMT", None),
        ("Sat, 02 May 20260000000000000000 12:00:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, now=NOW) == seconds


def endless_body() -> Iterator[bytes]:
    while True:
        yield b" " * 1024


@pytest.mark.parametrize("timeout_s", [0.0, 600.0], ids=["slow", "large"])
def test_response_that_does_not_end_leaves_the_outcome_unknown(timeout_s: float) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=endless_body()))
    poster = ItemPoster(
        "https://events.example",
        "key",
        make_http_client=lambda: httpx.Client(transport=transport, timeout=timeout_s),
    )
    in_flight = InFlight(Endpoint.TRACK, "", (1,), (b"{}",), since_ms=0, is_repeat=False)

    outcome = poster.post(in_flight)
    poster.close()

    assert outcome == Failed("ReadTimeout: the response does not end", is_unknown=True)


def test_pauses_double_up_to_a_minute_and_are_spread() -> None:
    backoff = Backoff()
    for expected_s in (0.5, 1, 2, 4, 8, 16, 32, 60, 60):
        assert 0.5 * expected_s <= backoff.next_pause_s() <= 1.5 * expected_s
    backoff.reset()
    assert 0.25 <= backoff.next_pause_s() <= 0.75
    assert 7 <= backoff.next_pause_s(7) <= 7.7
    assert 1 <= backoff.next_pause_s(0) <= 3


def test_retry_after_is_not_cut_short_by_a_flush(server: FakeHeadrace) -> None:
    server.reply_once(503, headers={"Retry-After": "600"})
    with Headrace(server.url, "key", outbox=None, linger_s=0.0) as client:
        client.track("a")
        while not client.stats().failures:
            time.sleep(0.01)
        assert not client.flush(0.2)
        assert not client.flush(0.2)
        assert len(server.requests) == 1
        client.close(0)


@pytest.mark.parametrize(("synchronous", "level"), [("normal", 1), ("full", 2)])
def test_outbox_is_written_with_the_chosen_safety(
    tmp_path: Path, synchronous: str, level: int
) -> None:
    database = Database(
        tmp_path / "outbox", synchronous=synchronous, max_bytes=10**6, busy_timeout_s=1
    )
    with database.connect() as connection:
        pragmas = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode")
        ]
    database.close()
    assert pragmas == [level, "wal"]


def command(*arguments: str) -> tuple[int, list[Any], str]:
    """Run the command for outboxes; return its exit code, its lines and its errors."""
    source = Path(__file__).parents[3] / "clients" / "python" / "src"
    done = subprocess.run(
        [sys.executable, "-m", "headrace_client", *arguments],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_command_shows_and_requeues_what_was_refused(server: FakeHeadrace, tmp_path: Path) -> None:
    outbox = str(tmp_path / "outbox")
    error = {"status": "error", "message": "Website scope mismatch", "code": "SCOPE_MISMATCH"}
    server.reply_once(403, error)
    with Headrace(server.url, "key", outbox=outbox, linger_s=0.0) as client:
        client.track("a")
        assert client.flush()
        counts = {"pending": 0, "refused": 1, "stored_total": 0, "refused_total": 1}

        assert command(outbox) == (0, [{**counts, "discarded_total": 0}], "")
        _, (refused,), _ = command(outbox, "refused")
        assert (refused["item"]["name"], refused["status"]) == ("a", 403)
        assert command(outbox, "requeue") == (0, [{"requeued": 1}], "")
        assert client.flush()
    assert server.event_names() == ["a"]
    assert command(outbox, "delete") == (0, [{"deleted": 0}], "")


def test_command_makes_no_outbox(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert command(str(missing)) == (1, [], f"cannot open {missing}: no such file\n")
    assert list(tmp_path.iterdir()) == []
