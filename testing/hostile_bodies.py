"""Generates bodies that may be expensive to decode: sizes, shapes, values, errors, encodings."""

import gzip
import random
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

import brotli  # type: ignore[import-untyped]  # has no type annotations
import zstandard

_MIN_BYTES = 1_024


class HostileBody(NamedTuple):
    """A body as it is sent, what it is made of, and its size before it was encoded."""

    wire: bytes
    encoding: str
    description: str
    plain_bytes: int


UNITS: Mapping[str, Callable[[random.Random], bytes]] = {
    "objects": lambda _: b"{}",
    "arrays": lambda _: b"[]",
    "keys": lambda _: b'{"a":0}',
    "wide objects": lambda rng: b"{" + _members(rng, 40) + b"}",
    "deep": lambda rng: _deep(rng.randrange(2, 62)),
    "integers": lambda rng: b"%d" % rng.randrange(10 ** rng.randrange(1, 20)),
    "long integers": lambda rng: b"9" * rng.choice((40, 400, 4_000)),
    "floats": lambda rng: repr(rng.random() * 10 ** rng.randrange(-300, 300)).encode(),
    "long floats": lambda rng: b"0." + b"1" * rng.choice((40, 770, 5_000)) + b"e-300",
    "out of range": lambda _: b"1e999",
    "texts": lambda rng: b'"%d"' % rng.randrange(1_000),
    "escapes": lambda rng: b'"' + rng.choice((b"\\n", b"\\u00e9", b"\\\\", b'\\"')) * 50 + b'"',
    "surrogates": lambda rng: b'"' + rng.choice((b"\\ud83d\\ude00", b"\\ud800")) * 20 + b'"',
    "NUL": lambda _: b'"\\u0000"',
    "letters": lambda rng: '"{}"'.format(rng.choice(("é", "漢", "😀")) * 30).encode(),
    "brackets in texts": lambda _: b'"[{\\":[{"',
    "blanks": lambda rng: b" " * rng.randrange(1, 200) + b"0",
}


def _members(rng: random.Random, count: int) -> bytes:
    return b",".join(b'"k%d":0' % rng.randrange(1_000_000) for _ in range(count))


def _deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def _repeat(unit: bytes, size: int) -> bytes:
    return b",".join([unit] * max(1, size // (len(unit) + 1)))


def _in_properties(unit: bytes, size: int) -> bytes:
    return b'{"name":"a","properties":{"x":[' + _repeat(unit, size) + b"]}}"


def _as_keys(unit: bytes, size: int) -> bytes:
    count = max(1, size // (len(unit) + 12))
    return b'{"name":"a","properties":{' + _numbered(count, unit) + b"}}"


def _numbered(count: int, value: bytes) -> bytes:
    return b",".join(b'"%d":%b' % (number, value) for number in range(count))


def _as_unknown_keys(unit: bytes, size: int) -> bytes:
    return b"{" + _numbered(max(1, size // (len(unit) + 12)), unit) + b',"name":"a"}'


def _as_items(unit: bytes, size: int) -> bytes:
    return b"[" + _repeat(b'{"name":"a","properties":{"x":' + unit + b"}}", size) + b"]"


def _as_items_with_an_error(unit: bytes, size: int) -> bytes:
    items = _repeat(b'{"name":"a","value":' + unit + b"}", size)
    return b"[" + items + b',{"name":""}]'


def _as_dated_items(unit: bytes, size: int) -> bytes:
    item = b'{"name":"a","timestamp":"2025-10-10T10:10:10+02:00","ip":' + unit + b"}"
    return b"[" + _repeat(item, size) + b"]"


def _as_bare_items(unit: bytes, size: int) -> bytes:
    return b"[" + _repeat(unit, size) + b"]"


def _cut(unit: bytes, size: int) -> bytes:
    return _in_properties(unit, size)[:-1]


SHAPES: Mapping[str, Callable[[bytes, int], bytes]] = {
    "in properties": _in_properties,
    "under many keys": _as_keys,
    "under unknown keys": _as_unknown_keys,
    "in items": _as_items,
    "in items with an error": _as_items_with_an_error,
    "in dated items": _as_dated_items,
    "as items": _as_bare_items,
    "cut off": _cut,
}


def _raw_deflate(body: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


def _brotli(body: bytes) -> bytes:
    return cast("bytes", brotli.compress(body, quality=3))  # pyright: ignore[reportUnknownMemberType]


ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": lambda body: gzip.compress(body, 6),
    "deflate": _raw_deflate,
    "br": _brotli,
    "zstd": lambda body: zstandard.ZstdCompressor().compress(body),
}


def make_hostile_body(rng: random.Random, *, max_bytes: int) -> HostileBody:
    """Return a random body. Its size is distributed evenly over the orders of magnitude."""
    size = round(_MIN_BYTES * (max_bytes / _MIN_BYTES) ** rng.random())
    unit_name, shape = rng.choice(list(UNITS)), rng.choice(list(SHAPES))
    encoding = rng.choice(list(ENCODINGS))
    plain = SHAPES[shape](UNITS[unit_name](rng), size)
    description = f"{unit_name} {shape}, {len(plain):,} bytes, {encoding}"
    return HostileBody(ENCODINGS[encoding](plain), encoding, description, len(plain))
