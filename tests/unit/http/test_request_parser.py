"""Requests as their parser reports them to a connection."""

from typing import NamedTuple

import pytest
from httptools import HttpParserError

from headrace.http.server.parsing.head_reader import MAX_HEAD_BYTES, HeadTooLong
from headrace.http.server.parsing.request_parser import RequestParser


class Parsed(NamedTuple):
    method: bytes
    url: bytes
    headers: list[tuple[bytes, bytes]]
    keep_alive: bool
    body: bytes


class RecordingConnection:
    """Keeps the requests that a parser reports."""

    def __init__(self) -> None:
        self.parser = RequestParser(self)
        self.requests: list[Parsed] = []
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    def on_message_begin(self) -> None:
        self.url, self.headers, self.body = b"", [], b""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        pass

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        parser = self.parser
        self.requests.append(
            Parsed(
                parser.get_method(), self.url, self.headers, parser.should_keep_alive(), self.body
            )
        )


def parse(*chunks: bytes) -> list[Parsed]:
    connection = RecordingConnection()
    for chunk in chunks:
        connection.parser.feed_data(chunk)
    return connection.requests


HOST = b"Host: x\r\n"
PIPELINED = (
    b"POST /track HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n{}"
    b"\r\n\r\nGET /a?b HTTP/1.1\r\n" + HOST + b"\r\n"
    b"FLUSH /c HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    b"2 ; a\r\n[]\r\n0\r\nConnection: close\r\nContent-Length: 9\r\n\r\n"
    b"POST http://x?d HTTP/1.1\r\n" + HOST + b"Connection: close, Upgrade\r\nUpgrade: h2c\r\n"
    b"Content-Length: 1\r\n\r\n1GET /never HTTP/1.1\r\n"
)
REQUESTS = [
    Parsed(b"POST", b"/track", [(b"host", b"x"), (b"content-length", b"2")], True, b"{}"),
    Parsed(b"GET", b"/a?b", [(b"host", b"x")], True, b""),
    Parsed(b"UNKNOWN", b"/c", [(b"host", b"x"), (b"transfer-encoding", b"chunked")], True, b"[]"),
    Parsed(
        b"POST",
        b"/?d",
        [
            (b"host", b"x"),
            (b"connection", b"close, Upgrade"),
            (b"upgrade", b"h2c"),
            (b"content-length", b"1"),
        ],
        False,
        b"1",
    ),
]


def test_pipelined_requests_are_the_same_wherever_they_are_split() -> None:
    assert parse(PIPELINED) == REQUESTS
    assert parse(*(bytes([byte]) for byte in PIPELINED)) == REQUESTS
    for at in range(1, len(PIPELINED)):
        assert parse(PIPELINED[:at], PIPELINED[at:]) == REQUESTS


MALFORMED: dict[str, bytes] = {
    "no HTTP": b"nonsense\r\n",
    "no method": b" / HTTP/1.1\r\n",
    "a method that is no token": b"G@T / HTTP/1.1\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01",
    "bare line ends": b"GET / HTTP/1.1\nHost: x\n\n",
    "HTTP/0.9": b"GET /\r\nHost: x\r\n\r\n",
    "HTTP/2": b"GET / HTTP/2.0\r\nHost: x\r\n\r\n",
    "its preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a tunnel": b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n",
    "a blank before a colon": b"GET / HTTP/1.1\r\nHost : x\r\n",
    "a folded header": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "a NUL": b"GET / HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
    "two lengths": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    "length and chunks": b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Length: 1\r\n\r\n",
    "two codings": b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n",
    "another coding": b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=list(MALFORMED))
def test_malformed_request_is_refused_wherever_it_is_split(sent: bytes) -> None:
    for chunks in ([sent], [bytes([byte]) for byte in sent]):
        with pytest.raises(HttpParserError):
            parse(*chunks)


HOSTS: dict[bytes, bool] = {
    b"x": True,
    b"x.example:8080": True,
    b"x:": True,
    b"127.0.0.1": True,
    b"[::1]:80": True,
    b"a_b%20c ": True,
    b"": False,
    b"a b/c": False,
    b"a/b": False,
    b"user@x": False,
    b"x:80a": False,
    b"[::1": False,
    b"x, y": False,
    b"\xc3\xa9": False,
    b"%zz": False,
}


@pytest.mark.parametrize(("host", "is_valid"), HOSTS.items())
def test_host_is_a_host_with_an_optional_port(host: bytes, is_valid: bool) -> None:
    sent = b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host
    if is_valid:
        assert len(parse(sent)) == 1
    else:
        with pytest.raises(HttpParserError):
            parse(sent)


def test_blanks_around_a_header_value_are_no_part_of_it() -> None:
    lines = [b"Host: x \t", b"A: \t b \tc\t ", b"D: \t ", b"Transfer-Encoding: Chunked "]
    sent = b"\r\n".join([b"POST / HTTP/1.1", *lines, b"", b"1", b"e", b"0", b"", b""])
    headers = [(b"host", b"x"), (b"a", b"b \tc"), (b"d", b""), (b"transfer-encoding", b"Chunked")]

    for chunks in ([sent], [bytes([byte]) for byte in sent]):
        assert parse(*chunks) == [Parsed(b"POST", b"/", headers, True, b"e")]


def test_head_over_the_limit_is_too_long_in_any_number_of_chunks() -> None:
    start = b"GET / HTTP/1.1\r\nHost: x\r\nA: "
    fill = b"a" * (MAX_HEAD_BYTES - len(start) - 4)
    assert len(parse(start, fill, b"\r\n\r\n")) == 1
    for chunks in ([start + fill + b"a\r\n\r\n"], [start, fill, b"a\r\n\r\n"], [start, fill * 2]):
        with pytest.raises(HeadTooLong):
            parse(*chunks)
