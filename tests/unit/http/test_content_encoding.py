import gzip
import zlib
from collections.abc import Callable
from typing import Any, cast

import brotli  # type: ignore[import-untyped]  # brotli has no types
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from headrace.base.errors import InvalidBody, PayloadTooLarge, UnsupportedEncoding
from headrace.http.reading.content_encoding import DECODERS, MAX_MEMBERS, find_decoder

PLENTY = 1_000_000
BODY = b'{"name":"signup"}' * 100
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
LARGE_WINDOW = zstandard.ZstdCompressionParameters(window_log=24)


def raw_deflate(body: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


def zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(body)


def streamed_zstd(body: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(body) + compressor.flush()


def br(body: bytes) -> bytes:
    return cast("bytes", cast("Any", brotli).compress(body))


Encode = Callable[[bytes], bytes]

ENCODERS: dict[str, tuple[str, Encode]] = {
    "gzip": ("gzip", gzip.compress),
    "gzip of two members": ("gzip", lambda body: gzip.compress(body[:7]) + gzip.compress(body[7:])),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", br),
    "zstd": ("zstd", zstd),
    "zstd without its size": ("zstd", streamed_zstd),
    "zstd of two frames": ("zstd", lambda body: zstd(body[:7]) + zstd(body[7:])),
    "zstd with a skippable frame": ("zstd", lambda body: zstd(body) + SKIPPABLE),
}
SINGLE = {
    title: encoder
    for title, encoder in ENCODERS.items()
    if "two" not in title and "skippable" not in title
}
every_encoder = pytest.mark.parametrize(("name", "encode"), ENCODERS.values(), ids=list(ENCODERS))


@every_encoder
@given(body=st.binary(max_size=500))
def test_encoded_body_round_trips(name: str, encode: Encode, body: bytes) -> None:
    assert DECODERS[name](encode(body), PLENTY) == body


@every_encoder
def test_size_may_be_exactly_the_limit_and_no_more(name: str, encode: Encode) -> None:
    encoded = encode(BODY)

    assert DECODERS[name](encoded, len(BODY)) == BODY
    with pytest.raises(PayloadTooLarge):
        DECODERS[name](encoded, len(BODY) - 1)


@every_encoder
def test_decompression_bomb_is_stopped_at_the_limit(name: str, encode: Encode) -> None:
    with pytest.raises(PayloadTooLarge):
        DECODERS[name](encode(bytes(20_000_000)), 1000)


@pytest.mark.parametrize(("name", "encode"), SINGLE.values(), ids=list(SINGLE))
def test_data_that_ends_early_is_rejected(name: str, encode: Encode) -> None:
    encoded = encode(BODY)

    for length in range(len(encoded)):
        with pytest.raises(InvalidBody):
            DECODERS[name](encoded[:length], PLENTY)


@every_encoder
@pytest.mark.parametrize("rest", [b"\x00", b"garbage", b'{"name":"a"}'])
def test_trailing_data_is_rejected(name: str, encode: Encode, rest: bytes) -> None:
    with pytest.raises(InvalidBody):
        DECODERS[name](encode(BODY) + rest, PLENTY)


@pytest.mark.parametrize("name", DECODERS)
@given(garbage=st.binary(max_size=100))
def test_garbage_is_rejected_or_decoded(name: str, garbage: bytes) -> None:
    try:
        decoded = DECODERS[name](garbage, PLENTY)
    except (InvalidBody, PayloadTooLarge):
        return
    assert isinstance(decoded, bytes)


@pytest.mark.parametrize(("name", "encode"), [("gzip", gzip.compress), ("zstd", zstd)])
def test_members_are_bounded(name: str, encode: Encode) -> None:
    assert DECODERS[name](encode(b"a") * MAX_MEMBERS, PLENTY) == b"a" * MAX_MEMBERS
    with pytest.raises(PayloadTooLarge):
        DECODERS[name](encode(b"a") * (MAX_MEMBERS + 1), PLENTY)


def test_zstd_window_beyond_what_http_allows_is_rejected() -> None:
    compressor = zstandard.ZstdCompressor(compression_params=LARGE_WINDOW).compressobj()
    encoded = compressor.compress(BODY) + compressor.flush()

    with pytest.raises(InvalidBody):
        DECODERS["zstd"](encoded, PLENTY)


@pytest.mark.parametrize("values", [[b""], [b"identity"], [b"Identity"]])
def test_identity_needs_no_decoder(values: list[bytes]) -> None:
    assert find_decoder(values) is None


@pytest.mark.parametrize("value", [b"gzip", b"GZIP", b" gzip ", b"br", b"deflate", b"ZSTD"])
def test_encoding_name_is_case_insensitive(value: bytes) -> None:
    assert find_decoder([value]) is DECODERS[value.strip().lower().decode()]


@pytest.mark.parametrize(
    "values",
    [[b"compress"], [b"gzip, br"], [b"gzip", b"br"], [b"gzip", b"gzip"], [b"x-gzip"], [b"\xff"]],
)
def test_unknown_and_several_encodings_are_rejected(values: list[bytes]) -> None:
    with pytest.raises(UnsupportedEncoding):
        find_decoder(values)
