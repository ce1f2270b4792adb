"""Cases of the fuzzer: the bytes of one connection, made from a seed and a number alone."""

import gzip
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from chaos.fuzz.bodies import BODIES, mutate_body

_GETS: Final = (
    "/health",
    "/ready",
    "/docs",
    "/openapi.json",
    "/v1/query/schema",
    "/unknown",
    "/v1",
)
_METHODS: Final = ("GET", "OPTIONS", "PUT", "DELETE", "TRACE", "FOO", "M-SEARCH")
_HEADERS: Final = (
    *("Origin: https://shop.example", "Origin: null", "Accept: text/csv", "Accept: text/html;q=x"),
    *("Content-Type: text/plain", "Content-Type: text/html", "Content-Type: application/json; x"),
    *("Content-Encoding: br", "Content-Encoding: zstd", "Content-Encoding: deflate"),
    *("Idempotency-Key: one", "Idempotency-Key: \xff", "X-Forwarded-For: 1.2.3.4, [::1]:x"),
    *("Authorization: Bearer", "Authorization: Basic eA==", "x-api-key: hr_unknown"),
    *("Connection: Upgrade\r\nUpgrade: h2c", "Expect: x", "Cookie: a=b"),
    *("Sec-Fetch-Site: same-origin", "User-Agent: Googlebot/2.1", "databuddy-client-id: web_x"),
)
_TOKENS: Final = (
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b":",
        b" ",
        b"\t",
        b";",
        b",",
        b"%",
        b"?",
        b"#",
        b"\xff",
        b"\x80",
    ),
    *(b"\r\n\r\n", b"0\r\n\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"),
    *(
        b"Connection: close\r\n",
        b"Host: a b\r\n",
        b"HTTP/1.0",
        b"HTTP/2.0",
        b"ffffffffffffffff\r\n",
    ),
    *(b"-1", b"http://[", b"\x16\x03\x01", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b" folded\r\n"),
)


class Account(NamedTuple):
    """What requests of the fuzzer may refer to."""

    public_website: str
    private_website: str
    key: str


class Case(NamedTuple):
    """One connection. Without byte mutations every request gets exactly one response."""

    pieces: Sequence[bytes]
    requests: int
    is_valid_http: bool


def make_case(seed: int, number: int, account: Account) -> Case:
    """Return a case, always the same for the same arguments."""
    random = Random(f"{seed}:{number}")
    requests = random.choice((1, 1, 1, 2, 3, 6))
    is_valid_http = random.random() < 0.5
    sent = b"".join(_make_request(random, account) for _ in range(requests - 1))
    sent += _make_request(random, account, is_last=True)
    if not is_valid_http:
        for _ in range(random.choice((1, 1, 2, 5))):
            sent = _mutate_bytes(sent, random)
    return Case(_split(sent, random), requests, is_valid_http)


def _make_request(random: Random, account: Account, *, is_last: bool = False) -> bytes:
    path = random.choice((*BODIES, *BODIES, *_GETS))
    body = mutate_body(BODIES[path], random) if path in BODIES else b""
    method = "POST" if path in BODIES else "GET"
    if random.random() < 0.05:
        method = random.choice(_METHODS)
    headers = ["Host: x", *_identify(random, account)]
    if random.random() < 0.2:
        body, encoding = _encode(body, random)
        headers.append(encoding)
    headers += [each for each in random.sample(_HEADERS, 2) if random.random() < 0.3]
    if is_last:
        headers = [each for each in headers if not each.startswith("Connection")]
        headers.append("Connection: close")
    target = path + random.choice(("", f"?{_query(random, account)}"))
    return _encode_request(f"{method} {target} HTTP/1.1", headers, body, random)


def _query(random: Random, account: Account) -> str:
    website = random.choice((account.public_website, account.private_website, "web_unknown", ""))
    name = random.choice(("website_id", "client_id", "website%5fid", "a=b&website_id"))
    return f"{name}={website}"


def _identify(random: Random, account: Account) -> list[str]:
    return [f"Authorization: Bearer {account.key}"] if random.random() < 0.5 else []


def _encode(body: bytes, random: Random) -> tuple[bytes, str]:
    encoded = random.choice((gzip.compress(body, 1, mtime=0), zlib.compress(body, 1), body))
    if random.random() < 0.3:
        encoded = encoded[: random.randrange(len(encoded) + 1)]
    return encoded, f"Content-Encoding: {random.choice(('gzip', 'deflate', 'GZIP', 'identity'))}"


def _encode_request(line: str, headers: Sequence[str], body: bytes, random: Random) -> bytes:
    if random.random() < 0.3:
        headers = [*headers, "Transfer-Encoding: chunked"]
        body = _chunk(body, random)
    elif body or random.random() < 0.5:
        headers = [*headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([line, *headers, "", ""]).encode("latin-1") + body


def _chunk(body: bytes, random: Random) -> bytes:
    parts: list[bytes] = []
    while body:
        size = random.choice((1, 7, 100, len(body))) if len(parts) < 50 else len(body)
        extension = random.choice((b"", b"", b";a", b" ; a = b", b';a="b c"'))
        parts.append(b"%x%b\r\n%b\r\n" % (len(body[:size]), extension, body[:size]))
        body = body[size:]
    trailer = random.choice(
        (b"", b"", b"Connection: close\r\n", b"X: y\r\nAuthorization: Bearer a\r\n")
    )
    return b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


def _mutate_bytes(sent: bytes, random: Random) -> bytes:
    at = random.randrange(len(sent) + 1)
    end = at + random.choice((1, 1, 2, 10, 100))
    return random.choice(_MUTATIONS)(sent, at, end, random)


def _shuffle_lines(sent: bytes, _at: int, _end: int, random: Random) -> bytes:
    lines = sent.split(b"\r\n")
    return b"\r\n".join(random.sample(lines, len(lines)))


def _change_method(sent: bytes, _at: int, _end: int, random: Random) -> bytes:
    return random.choice((*_METHODS, "HEAD", "CONNECT")).encode() + sent[sent.find(b" ") :]


def _change_version(sent: bytes, _at: int, _end: int, random: Random) -> bytes:
    other = random.choice((b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1"))
    return sent.replace(b"HTTP/1.1", other, 1)


def _flip_bit(sent: bytes, at: int, _end: int, random: Random) -> bytes:
    flipped = bytes(byte ^ 1 << random.randrange(8) for byte in sent[at : at + 1])
    return sent[:at] + flipped + sent[at + 1 :]


_MUTATIONS: Final[Sequence[Callable[[bytes, int, int, Random], bytes]]] = (
    _flip_bit,
    _shuffle_lines,
    _change_method,
    _change_version,
    lambda sent, at, end, _: sent[:at] + sent[end:],
    lambda sent, at, end, _: sent[:end] + sent[at:],
    lambda sent, at, _, random: sent[:at] + random.choice(_TOKENS) + sent[at:],
    lambda sent, at, end, random: sent[:at] + random.choice(_TOKENS) + sent[end:],
    lambda sent, at, end, random: sent[:at] + random.randbytes(random.randrange(20)) + sent[end:],
    lambda sent, at, _end, _: sent[:at],
)


def _split(sent: bytes, random: Random) -> Sequence[bytes]:
    """Return the pieces to send, each in a packet of its own."""
    cuts = sorted(random.randrange(len(sent) + 1) for _ in range(random.choice((0, 0, 1, 2, 10))))
    edges = [0, *cuts, len(sent)]
    pieces = (sent[start:end] for start, end in pairwise(edges))
    return [piece for piece in pieces if piece]
