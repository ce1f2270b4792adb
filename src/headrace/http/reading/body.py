"""Reads request bodies, with limits while they arrive and while they are decoded."""

import asyncio
from functools import lru_cache

from msgspec import Struct

from headrace.base.errors import PayloadTooLarge, UnsupportedMediaType
from headrace.base.json_size import JsonLimits, check_json_size
from headrace.http.reading.content_encoding import Decoder, find_decoder
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.reading.slow_bodies import SlowBodyGuard
from headrace.http.request import ClientDisconnected, Request

_INLINE_BYTES = 131_072
"""Largest body, encoded and decoded, that the event loop decodes: a fraction of a millisecond."""

_MAX_CONCURRENT_DECODES = 4
"""Concurrent decodes in threads. Their output is charged to the limiter only when they end."""


class Body(Struct, frozen=True):
    """A received body. `decompress` decodes its encoding; None where nothing is left to decode."""

    data: bytes
    decompress: Decoder | None = None


class BodyReader:
    """Reads the bodies of endpoints with the same limits."""

    def __init__(
        self,
        *,
        max_wire_bytes: int,
        max_decoded_bytes: int,
        json_limits: JsonLimits,
        slow_body_guard: SlowBodyGuard,
        inflight: InflightLimiter,
    ) -> None:
        self._max_wire_bytes = max_wire_bytes
        self._max_decoded_bytes = max_decoded_bytes
        self._json_limits = json_limits
        self._slow_body_guard = slow_body_guard
        self._inflight = inflight
        self._decode_slots = asyncio.Semaphore(_MAX_CONCURRENT_DECODES)

    async def read(self, request: Request) -> Body:
        """Return the body; size, type and encoding are checked before a byte is read.

        It is decoded where that is cheap: a large one would take many times its memory here.

        Raises `PayloadTooLarge`, `UnsupportedMediaType`, `UnsupportedEncoding`, `InvalidBody` for
        damaged data, `RequestTimeout` for a body that stalls or is too slow, `Unavailable` if the
        bodies of all requests exceed their limit, and `ClientDisconnected`.
        """
        self._check_declared_size(request)
        decoder = _find_body_decoder(request)
        wire = await self._receive_all(request)
        if decoder is None:
            return Body(self._check_decoded_size(wire))
        decoded = self._decode_small(wire, decoder)
        if decoded is not None:
            return Body(decoded)
        return Body(wire, decoder)

    def reserve(self, request: Request, size: int) -> None:
        """Charge more memory to a request. Raises `Unavailable`; see `InflightLimiter`."""
        self._inflight.reserve(request, size)

    async def receive(self, request: Request) -> bytes:
        """Return the encoded body; of the checks of `read`, only size and time apply."""
        self._check_declared_size(request)
        return await self._receive_all(request)

    async def decode(self, request: Request, wire: bytes) -> bytes:
        """Return the decoded body for the result of `receive`, with the other checks of `read`."""
        return await self._decode(request, wire, _find_body_decoder(request))

    async def decode_json_text(self, request: Request, wire: bytes) -> bytes:
        """Return the decoded body, as `decode`, if its JSON is within the limits."""
        body = await self.decode(request, wire)
        check_json_size(body, self._json_limits)
        return body

    def _check_declared_size(self, request: Request) -> None:
        declared = request.headers.get(b"content-length")
        if declared is not None and int(declared) > self._max_wire_bytes:
            raise PayloadTooLarge

    async def _receive_all(self, request: Request) -> bytes:
        body, is_complete = await self._receive_chunk(request)
        if not is_complete:
            body = await self._receive_rest(body, request)
        if len(body) > self._max_wire_bytes:
            raise PayloadTooLarge
        return body

    async def _receive_rest(self, first: bytes, request: Request) -> bytes:
        body = bytearray(first)  # a list of tiny chunks would take many times the memory
        is_complete = False
        since_s = asyncio.get_running_loop().time()
        while not is_complete:
            if len(body) > self._max_wire_bytes:
                raise PayloadTooLarge
            chunk, is_complete = await self._receive_chunk(request)
            body += chunk
            if not is_complete:
                self._slow_body_guard.check_throughput(since_s, len(body))
        return bytes(body)

    async def _receive_chunk(self, request: Request) -> tuple[bytes, bool]:
        message = await self._slow_body_guard.next_message(request.receive)
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        chunk = message.get("body", b"")
        self._inflight.reserve(request, len(chunk))
        return chunk, not message.get("more_body", False)

    async def _decode(self, request: Request, wire: bytes, decoder: Decoder | None) -> bytes:
        if decoder is None:
            return self._check_decoded_size(wire)
        small = self._decode_small(wire, decoder)
        if small is not None:
            return small
        async with self._decode_slots:
            decoded = await asyncio.to_thread(decoder, wire, self._max_decoded_bytes)
            self._inflight.reserve(request, len(decoded))
        return decoded

    def _check_decoded_size(self, decoded: bytes) -> bytes:
        if len(decoded) > self._max_decoded_bytes:
            raise PayloadTooLarge
        return decoded

    def _decode_small(self, wire: bytes, decoder: Decoder) -> bytes | None:
        """Decode a body that is cheap to decode; return None for another."""
        if len(wire) > _INLINE_BYTES:
            return None
        try:
            return decoder(wire, min(_INLINE_BYTES, self._max_decoded_bytes))
        except PayloadTooLarge:
            if self._max_decoded_bytes <= _INLINE_BYTES:
                raise
            return None  # too large for the event loop


def _find_body_decoder(request: Request) -> Decoder | None:
    content_type = request.headers.get(b"content-type")
    if content_type is not None and not is_json_type(content_type):
        raise UnsupportedMediaType(content_type.decode("latin-1"))
    if b"content-encoding" not in request.headers:
        return None
    return find_decoder(request.header_values(b"content-encoding"))


@lru_cache(maxsize=64)
def is_json_type(content_type: bytes) -> bool:
    """Return whether a Content-Type means JSON in UTF-8: JSON's types, plain text, or empty."""
    media_type, *parameters = content_type.decode("latin-1").lower().split(";")
    return _is_json_media_type(media_type.strip()) and all(map(_is_utf8_or_other, parameters))


def _is_json_media_type(media_type: str) -> bool:
    if media_type in ("application/json", "text/json", "text/plain", ""):
        return True
    return media_type.startswith("application/") and media_type.endswith("+json")


def _is_utf8_or_other(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() != "charset" or value.strip().strip('"') in ("utf-8", "utf8")
