"""HTTP/1.1 on raw sockets: framing, Host, Expect, methods, and the order of responses."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from testing.service import Service
from tests.e2e.connections import connect, read_all

ORIGIN = "https://shop.example"
EVENT = b'{"name":"raw_http"}'
SUCCESS = {"status": "success", "type": "custom_event", "count": 1}


class Reply(NamedTuple):
    """A response on a raw socket."""

    status: int
    headers: dict[str, str]
    body: Any


def exchange(service: Service, *pieces: bytes, closes_half: bool = False) -> list[Reply]:
    """Send pieces on one connection, each in a packet, and return all responses until its end."""
    with connect(service) as connection:
        for piece in pieces:
            connection.sendall(piece)
        if closes_half:
            connection.shutdown(1)
        return list(split(read_all(connection)))


def split(received: bytes) -> Iterator[Reply]:
    """Yield the responses in the bytes of a connection."""
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        length = int(headers.get("content-length", "0"))
        body, received = rest[:length], rest[length:]
        is_json = headers.get("content-type") == "application/json"
        yield Reply(int(status.split()[1]), headers, json.loads(body) if is_json else body)


def post(
    path: str, *headers: str, host: str = "Host: x", body: bytes = EVENT, version: str = "1.1"
) -> bytes:
    lines = [f"POST {path} HTTP/{version}", *filter(None, [host]), *headers]
    return ("\r\n".join([*lines, f"Content-Length: {len(body)}\r\n\r\n"])).encode() + body


def chunked(path: str, *headers: str, trailer: str = "", body: bytes = EVENT) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", *headers, "Transfer-Encoding: chunked\r\n\r\n"]
    trailer = trailer and f"{trailer}\r\n"
    return "\r\n".join(lines).encode() + b"%x\r\n%b\r\n0\r\n%b\r\n" % (
        len(body),
        body,
        trailer.encode(),
    )


def last(path: str) -> bytes:
    """Return an event after which the connection ends."""
    return post(path, "Connection: close")


def pieces_of(sent: bytes) -> dict[str, list[bytes]]:
    trailer = sent.index(b"\r\n0\r\n") + 5
    return {
        "in one piece": [sent],
        "before the trailer": [sent[:trailer], sent[trailer:]],
        "in the trailer": [sent[: trailer + 4], sent[trailer + 4 :]],
        "before the end": [sent[:-2], sent[-2:]],
    }


@pytest.fixture(scope="module")
def path(service: Service) -> str:
    """The path of /track for a website with an allowed origin."""
    return f"/track?website_id={service.website(origins=[ORIGIN])}"


TRAILERS = {
    "Content-Type": "Content-Type: text/html",
    "Content-Encoding": "Content-Encoding: gzip",
    "Content-Length": "Content-Length: 3",
    "Transfer-Encoding": "Transfer-Encoding: gzip",
    "Origin": "Origin: https://elsewhere.example",
    "Authorization": "Authorization: Bearer hr_invalid",
    "Idempotency-Key": "Idempotency-Key: trailer",
    "Host": "Host: a b/c",
    "Connection: close": "Connection: close",
    "Connection: upgrade": "Connection: upgrade\r\nUpgrade: h2c",
}


@pytest.mark.parametrize("where", list(pieces_of(chunked("/"))))
@pytest.mark.parametrize("trailer", TRAILERS.values(), ids=list(TRAILERS))
def test_trailer_fields_change_nothing(
    service: Service, path: str, trailer: str, where: str
) -> None:
    sent = chunked(path, trailer=trailer)
    first, second = exchange(service, *pieces_of(sent)[where], last(path))
    assert (first.status, first.body, first.headers.get("connection")) == (200, SUCCESS, None)
    assert "access-control-allow-origin" not in first.headers
    assert (second.status, second.body) == (200, SUCCESS)


@pytest.mark.parametrize("where", list(pieces_of(chunked("/"))))
def test_key_in_a_trailer_is_no_credential(service: Service, where: str) -> None:
    trailer = f"Authorization: Bearer {service.master.secret}\r\nConnection: close"
    sent = pieces_of(chunked("/track", trailer=trailer))[where]
    first, _ = exchange(service, *sent, last("/track"))
    assert (first.status, first.body["message"]) == (401, "API key or website_id required")


HOSTS = {
    "none": "",
    "two": "Host: x\r\nHost: x",
    "no host": "Host: a b/c",
    "empty": "Host:",
    "with a user": "Host: a@b",
}


@pytest.mark.parametrize("host", HOSTS.values(), ids=list(HOSTS))
def test_missing_or_invalid_host_is_400_and_the_connection_ends(
    service: Service, path: str, host: str
) -> None:
    (reply,) = exchange(service, post(path, host=host) + last(path))
    assert (reply.status, reply.headers["connection"]) == (400, "close")


def test_host_may_be_missing_in_http_1_0(service: Service, path: str) -> None:
    (reply,) = exchange(service, post(path, host="", version="1.0"))
    assert (reply.status, reply.body) == (200, SUCCESS)


def test_expect_is_ignored_in_http_1_0(service: Service, path: str) -> None:
    (reply,) = exchange(service, post(path, "Expect: 100-continue", version="1.0"))
    assert (reply.status, reply.body) == (200, SUCCESS)


def test_expect_gets_100_in_http_1_1(service: Service, path: str) -> None:
    interim, reply = exchange(service, post(path, "Expect: 100-continue", "Connection: close"))
    assert (interim.status, reply.status, reply.body) == (100, 200, SUCCESS)


@pytest.mark.parametrize("line", ["%x ;a=b", "%x; a = b", "%x\t;\ta\t;b ", '%x ; a = "c d" '])
def test_blanks_around_chunk_extensions_are_accepted(
    service: Service, path: str, line: str
) -> None:
    size = b"%x\r\n" % len(EVENT)
    sent = chunked(path).replace(size, f"{line % len(EVENT)}\r\n".encode())
    first, second = exchange(service, sent, last(path))
    assert (first.status, first.body, second.status) == (200, SUCCESS, 200)


@pytest.mark.parametrize("blanks", ["", "  ", "\t", " \t "], ids=["none", "two", "tab", "several"])
def test_blanks_behind_a_header_value_are_no_part_of_it(service: Service, blanks: str) -> None:
    website = service.website(origins=[ORIGIN])
    names = [f"databuddy-client-id: {website}{blanks}", f"Origin: {ORIGIN}{blanks}"]
    sent = post("/track", *names)
    once = post("/track", *names, f"Idempotency-Key: once{blanks}")
    repeated = post("/track", *names, "Idempotency-Key: once", "Connection: close")

    replies = exchange(service, sent, sent, sent, once, repeated)

    assert [(reply.status, reply.body) for reply in replies] == [(200, SUCCESS)] * 5
    assert {reply.headers["access-control-allow-origin"] for reply in replies} == {ORIGIN}
    assert service.count(website, "events") == 4


@pytest.mark.parametrize("is_chunked", [True, False], ids=["chunked", "sized"])
def test_event_of_a_half_closed_connection_is_answered(
    service: Service, path: str, is_chunked: bool
) -> None:
    sent = chunked(path) if is_chunked else post(path)
    for _ in range(3):  # the head is known from its second occurrence on
        (reply,) = exchange(service, sent, closes_half=True)
        assert (reply.status, reply.body) == (200, SUCCESS)


METHODS = ["FOO", "track", "LINK", "FLUSH", "PROPFIND", "GETX", "G", "M-SEARCH", "X" * 200]


@pytest.mark.parametrize("method", METHODS)
def test_unknown_method_is_405_in_the_envelope_with_allow(
    service: Service, path: str, method: str
) -> None:
    ingestion = post(path).replace(b"POST", method.encode(), 1)
    query = post("/v1/query/custom").replace(b"POST", method.encode(), 1)
    track, custom, _ = exchange(service, ingestion, query, last(path))
    assert (track.status, track.headers["allow"]) == (405, "post, options")
    assert {**track.body, "requestId": ""} == {
        "status": "error",
        "message": "Method not allowed",
        "code": "METHOD_NOT_ALLOWED",
        "requestId": "",
    }
    assert (custom.status, custom.headers["allow"]) == (405, "post, options")
    assert {**custom.body, "requestId": ""} == {
        "success": False,
        "error": "Method not allowed",
        "code": "METHOD_NOT_ALLOWED",
        "requestId": "",
    }


MALFORMED = {
    "no HTTP": b"nonsense\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "bare line ends": b"GET /health HTTP/1.1\nHost: x\n\n",
    "a method that is no token": b"G@T /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header without a colon": b"GET /health HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
    "a folded header": b"GET /health HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "two lengths": b"POST /track HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
    b"Content-Length: 1\r\n\r\n",
    "length and chunks": b"POST /track HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": b"POST /track HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
    "a bad chunk": b"POST /track HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a bad trailer": b"POST /track HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\nno colon\r\n\r\n",
    "a bad target": b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
    "no ASCII": b"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=list(MALFORMED))
def test_malformed_http_is_400_and_the_connection_ends(
    service: Service, path: str, sent: bytes
) -> None:
    (reply,) = exchange(service, sent)
    assert (reply.status, reply.headers["connection"]) == (400, "close")
    answered, malformed = exchange(service, post(path) + sent)
    assert (answered.status, answered.body) == (200, SUCCESS)
    assert (malformed.status, malformed.headers["connection"]) == (400, "close")


def test_every_request_on_a_connection_is_answered_in_order(service: Service, path: str) -> None:
    requests = [
        post(path),
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
        chunked(path, trailer="Connection: close"),
        post("/v1/query/custom"),
        post("/unknown"),
        b"\r\n" + post(path, "Connection: Upgrade", "Upgrade: h2c"),
        post(path).replace(b"POST", b"FOO", 1),
        post(f"http://x{path}"),
    ]
    statuses = [200, 200, 200, 401, 404, 200, 405, 200]
    sent = b"".join([*requests, last(path)])
    for size in (len(sent), 1_000, 100, 7):
        pieces = re.findall(b"(?s).{1,%d}" % size, sent)
        assert [reply.status for reply in exchange(service, *pieces)] == [*statuses, 200]
