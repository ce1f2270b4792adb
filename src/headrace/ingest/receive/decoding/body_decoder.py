"""Decides where a body is decoded: on the event loop, or in a background process.

A body within the bounds of its size can take a second to decode, during which msgspec releases
neither the event loop nor the interpreter's lock. Such bodies are decoded in another process, one
at a time. Those that cost milliseconds are decoded on the loop, one in each of its turns.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from headrace.base.errors import Unavailable
from headrace.base.json_size import count_bytes
from headrace.ingest.receive.decoding.decode_request import (
    DecodedRequest,
    decode_request,
    try_decode_request,
)
from headrace.ingest.receive.draft import BodyToDecode, RecordDraft, decode_draft
from headrace.ports.background import BackgroundProcess

CHEAP_BYTES = 4_096
"""Any body of this size is decoded, or its errors are listed, in 2 ms at worst."""

_LISTED_BYTES = 16_384
"""Largest body whose errors are listed on the event loop: 8 ms at worst."""

_INLINE_BYTES = 65_536
"""Largest body that is decoded on the event loop whatever it consists of: 10 ms at worst."""

_LIGHT_BYTES, _LIGHT_VALUES = 262_144, 16_384
"""Largest body, and most values in it, that are decoded there if it is valid: 15 ms at worst."""

_QUEUE_TIMEOUT_S = 10.0
_VALUE_MARKS = b"{[,"


class BodyDecoder:
    """Decodes the bodies of a worker; used from one event loop by many tasks."""

    def __init__(self, background: BackgroundProcess) -> None:
        self._background = background
        self._turn = asyncio.Lock()
        self._others = asyncio.Lock()
        self._next = asyncio.Lock()

    async def try_on_loop(self, to_decode: BodyToDecode) -> DecodedRequest | None:
        """Decode a body that is cheap; return None for another, which `in_background` decodes.

        Raises `InvalidBody` or `PayloadTooLarge`.
        """
        if len(to_decode.body) <= CHEAP_BYTES and to_decode.decompress is None:
            return _decode_with_errors(to_decode)
        if not _is_light(to_decode):
            return None
        async with self._turn:
            await asyncio.sleep(0)  # lets the loop go round between two bodies
            if len(to_decode.body) <= _LISTED_BYTES:
                return _decode_with_errors(to_decode)
            return try_decode_request(
                to_decode.endpoint,
                to_decode.body,
                received_ms=to_decode.received_ms,
                has_api_key=to_decode.has_api_key,
                limits=to_decode.limits,
            )

    async def in_background(self, to_decode: BodyToDecode, *, goes_first: bool) -> RecordDraft:
        """Decode any body; those that go first overtake the others that wait.

        Raises `InvalidBody` or `PayloadTooLarge`, and `Unavailable` after ten seconds in the queue.
        """
        async with self._queue(goes_first=goes_first):
            return await self._background.run(decode_draft, to_decode)

    @asynccontextmanager
    async def _queue(self, *, goes_first: bool) -> AsyncGenerator[None]:
        """Let one body pass at a time. Of the others only one competes with those that go first."""
        locks = (self._next,) if goes_first else (self._others, self._next)
        acquired: list[asyncio.Lock] = []
        try:
            try:
                async with asyncio.timeout(_QUEUE_TIMEOUT_S):
                    for lock in locks:
                        await lock.acquire()
                        acquired.append(lock)
            except TimeoutError as error:
                raise Unavailable("too many large bodies are waiting") from error
            yield
        finally:
            for lock in acquired:
                lock.release()


def _is_light(to_decode: BodyToDecode) -> bool:
    size = len(to_decode.body)
    if to_decode.decompress is not None or size > _LIGHT_BYTES:
        return False
    return size <= _INLINE_BYTES or count_bytes(to_decode.body, _VALUE_MARKS) <= _LIGHT_VALUES


def _decode_with_errors(to_decode: BodyToDecode) -> DecodedRequest:
    return decode_request(
        to_decode.endpoint,
        to_decode.body,
        received_ms=to_decode.received_ms,
        has_api_key=to_decode.has_api_key,
        limits=to_decode.limits,
    )
