"""Decodes a Content-Encoding, with a size limit that applies while decoding.

Every decoder takes the whole encoded body and the maximum size of the decoded one. It raises
`PayloadTooLarge` over that size, and `InvalidBody` for data that is damaged, ends early, or
continues behind its end.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from io import SEEK_CUR, BytesIO
from typing import Any, cast

import brotli as untyped_brotli  # type: ignore[import-untyped]  # brotli has no types
import zstandard

from headrace.base.errors import InvalidBody, PayloadTooLarge, UnsupportedEncoding
from headrace.http.compression import IDENTITY

Decoder = Callable[[bytes, int], bytes]

MAX_MEMBERS = 1_000
"""Maximum of gzip members or zstd frames in a body: half a million empty ones fit into 10 MiB."""

_BROTLI = cast("Any", untyped_brotli)
_CHUNK_BYTES = 65_536
_ZSTD_WINDOW_BYTES = 8_388_608  # the limit of RFC 9659 for this Content-Encoding
_GZIP = 16 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS


def find_decoder(values: list[bytes]) -> Decoder | None:
    """Return the decoder for the Content-Encoding headers of a request; None for identity.

    Raises `UnsupportedEncoding` for an unknown encoding and for several.
    """
    name = b",".join(values).strip().lower().decode("latin-1")
    if name in ("", IDENTITY):
        return None
    decoder = DECODERS.get(name)
    if decoder is None:
        raise UnsupportedEncoding(name, ENCODINGS)
    return decoder


def decode_gzip(encoded: bytes, max_bytes: int) -> bytes:
    """Decode gzip with up to `MAX_MEMBERS` members."""
    return _join(_gzip_chunks(BytesIO(encoded)), max_bytes)


def decode_deflate(encoded: bytes, max_bytes: int) -> bytes:
    """Decode deflate: with the zlib header, as RFC 9110 has it, or raw, as many clients send it."""
    stream = BytesIO(encoded)
    window_bits = zlib.MAX_WBITS if _has_zlib_header(encoded) else _RAW_DEFLATE
    decoded = _join(_inflate(stream, window_bits), max_bytes)
    if stream.read(1):
        raise InvalidBody
    return decoded


def decode_brotli(encoded: bytes, max_bytes: int) -> bytes:
    """Decode one brotli stream."""
    return _join(_brotli_chunks(encoded), max_bytes)


def decode_zstd(encoded: bytes, max_bytes: int) -> bytes:
    """Decode zstd frames, skippable ones too.

    The reader of the library that limits the output does not report an incomplete frame, and the
    one that reports it has no limit. So the first pass counts, and the second decodes a body that
    is known to be small enough.
    """
    _join(_zstd_chunks(encoded), max_bytes, keep=False)
    return b"".join(_zstd_frames(BytesIO(encoded)))


DECODERS: Mapping[str, Decoder] = {
    "gzip": decode_gzip,
    "deflate": decode_deflate,
    "br": decode_brotli,
    "zstd": decode_zstd,
}

ENCODINGS = (*DECODERS, IDENTITY)


def _join(chunks: Iterator[bytes], max_bytes: int, *, keep: bool = True) -> bytes:
    kept: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise PayloadTooLarge
        if keep:
            kept.append(chunk)
    return b"".join(kept)


def _gzip_chunks(stream: BytesIO) -> Iterator[bytes]:
    for _ in range(MAX_MEMBERS):
        yield from _inflate(stream, _GZIP)
        if _is_at_end(stream):
            return
    raise PayloadTooLarge


def _inflate(stream: BytesIO, window_bits: int) -> Iterator[bytes]:
    """Decode one member; the stream is behind it afterwards."""
    inflater = zlib.decompressobj(window_bits)
    while not inflater.eof:
        feed = inflater.unconsumed_tail or stream.read(_CHUNK_BYTES)
        try:
            chunk = inflater.decompress(feed, _CHUNK_BYTES)
        except zlib.error as error:
            raise InvalidBody from error
        if not feed and not chunk:
            raise InvalidBody
        yield chunk
    stream.seek(-len(inflater.unused_data), SEEK_CUR)


def _has_zlib_header(encoded: bytes) -> bool:
    return len(encoded) >= 2 and encoded[0] & 0x0F == 8 and int.from_bytes(encoded[:2]) % 31 == 0


def _brotli_chunks(encoded: bytes) -> Iterator[bytes]:
    decoder: Any = _BROTLI.Decompressor()
    feed = encoded
    while not decoder.is_finished():
        try:
            chunk = decoder.process(feed, output_buffer_limit=_CHUNK_BYTES)
        except _BROTLI.error as error:
            raise InvalidBody from error
        if not chunk and not decoder.is_finished():
            raise InvalidBody
        feed = b""
        yield chunk


def _zstd_chunks(encoded: bytes) -> Iterator[bytes]:
    reader = _zstd_decompressor().stream_reader(encoded, read_across_frames=True)
    try:
        while chunk := reader.read(_CHUNK_BYTES):
            yield chunk
    except zstandard.ZstdError as error:
        raise InvalidBody from error


def _zstd_frames(stream: BytesIO) -> Iterator[bytes]:
    for _ in range(MAX_MEMBERS):
        yield from _zstd_frame(stream)
        if _is_at_end(stream):
            return
    raise PayloadTooLarge


def _zstd_frame(stream: BytesIO) -> Iterator[bytes]:
    """Decode one frame; the stream is behind it afterwards."""
    frame = _zstd_decompressor().decompressobj()
    while not frame.eof:
        feed = stream.read(_CHUNK_BYTES)
        if not feed:
            raise InvalidBody
        try:
            yield frame.decompress(feed)
        except zstandard.ZstdError as error:
            raise InvalidBody from error
    stream.seek(-len(frame.unused_data), SEEK_CUR)


def _zstd_decompressor() -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)


def _is_at_end(stream: BytesIO) -> bool:
    return stream.tell() == len(stream.getbuffer())
