"""Reading the body of a call, bounded while it comes and while it is decoded."""

import asyncio
from functools import lru_cache

from headrace.base.errors import PayloadTooLarge, UnsupportedMediaType
from headrace.http.reading.content_encoding import Decoder, find_decoder
from headrace.http.reading.memory_limit import InflightBytes
from headrace.http.reading.slow_bodies import StallWatch
from headrace.http.request import Call, Disconnected

_INLINE_BYTES = 131_072
"""What is decoded on the event loop, before or after decoding: a fraction of a millisecond."""

_MOST_DECODING = 4
"""Bodies that are decoded in threads at once: what comes out of them is not counted until then."""


class BodyReader:
    """Reads the bodies of one kind of endpoint, within its limits."""

    def __init__(
        self,
        *,
        max_wire_bytes: int,
        max_decoded_bytes: int,
        stalls: StallWatch,
        inflight: InflightBytes,
    ) -> None:
        self._max_wire_bytes = max_wire_bytes
        self._max_decoded_bytes = max_decoded_bytes
        self._stalls = stalls
        self._inflight = inflight
        self._decoding = asyncio.Semaphore(_MOST_DECODING)

    async def read(self, call: Call) -> bytes:
        """Return the decoded body; size, type and encoding are checked before a byte is read.

        Raises `PayloadTooLarge`, `UnsupportedMediaType`, `UnsupportedEncoding`, `InvalidBody`
        for damaged data, `RequestTimeout` for a body that stalls or trickles, `Unavailable` where
        there are too many bytes of other bodies, and `Disconnected`.
        """
        self._check_declared_size(call)
        decoder = _check_form(call)
        return await self._decode(call, await self._receive_all(call), decoder)

    async def receive(self, call: Call) -> bytes:
        """Return the body as it is on the wire, refused by its size alone."""
        self._check_declared_size(call)
        return await self._receive_all(call)

    async def decode(self, call: Call, wire: bytes) -> bytes:
        """Do what `read` does, with a body that `receive` has returned."""
        return await self._decode(call, wire, _check_form(call))

    def _check_declared_size(self, call: Call) -> None:
        declared = call.headers.get(b"content-length")
        if declared is not None and int(declared) > self._max_wire_bytes:
            raise PayloadTooLarge

    async def _receive_all(self, call: Call) -> bytes:
        body, is_whole = await self._receive_piece(call)
        if not is_whole:
            body = await self._receive_rest(body, call)
        if len(body) > self._max_wire_bytes:
            raise PayloadTooLarge
        return body

    async def _receive_rest(self, first: bytes, call: Call) -> bytes:
        body, is_whole = bytearray(first), False  # a list of tiny pieces would be many times as big
        since_s = asyncio.get_running_loop().time()
        while not is_whole:
            if len(body) > self._max_wire_bytes:
                raise PayloadTooLarge
            piece, is_whole = await self._receive_piece(call)
            body += piece
            if not is_whole:
                self._stalls.check_pace(since_s, len(body))
        return bytes(body)

    async def _receive_piece(self, call: Call) -> tuple[bytes, bool]:
        message = await self._stalls.next_message(call.receive)
        if message["type"] == "http.disconnect":
            raise Disconnected
        piece = message.get("body", b"")
        self._inflight.hold(call, len(piece))
        return piece, not message.get("more_body", False)

    async def _decode(self, call: Call, wire: bytes, decoder: Decoder | None) -> bytes:
        if decoder is None:
            if len(wire) > self._max_decoded_bytes:
                raise PayloadTooLarge
            return wire
        if len(wire) <= _INLINE_BYTES:
            try:
                return decoder(wire, min(_INLINE_BYTES, self._max_decoded_bytes))
            except PayloadTooLarge:
                pass  # for the event loop; a thread takes it
        async with self._decoding:
            decoded = await asyncio.to_thread(decoder, wire, self._max_decoded_bytes)
            self._inflight.hold(call, len(decoded))
        return decoded


def _check_form(call: Call) -> Decoder | None:
    content_type = call.headers.get(b"content-type")
    if content_type is not None and not is_json_type(content_type):
        raise UnsupportedMediaType
    if b"content-encoding" not in call.headers:
        return None
    return find_decoder(call.header_values(b"content-encoding"))


@lru_cache(maxsize=64)
def is_json_type(content_type: bytes) -> bool:
    """Tell whether a Content-Type means JSON in UTF-8: JSON's own types, plain text, or empty."""
    media_type, *parameters = content_type.decode("latin-1").lower().split(";")
    return _is_json_media_type(media_type.strip()) and all(map(_is_utf8_or_other, parameters))


def _is_json_media_type(media_type: str) -> bool:
    if media_type in ("application/json", "text/json", "text/plain", ""):
        return True
    return media_type.startswith("application/") and media_type.endswith("+json")


def _is_utf8_or_other(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() != "charset" or value.strip().strip('"') in ("utf-8", "utf8")
