"""The newest items of one website, shared by all streams of a worker."""

import asyncio
from collections import deque
from typing import Final

import msgspec
from msgspec import Struct

from headrace.formats.event_stream import encode_event
from headrace.ports.live import KEPT_ITEMS, LiveItems

MISSED: Final = "missed"

_MAX_DIGITS: Final = 18
"""More digits than a number of any feed has."""


class Position(Struct, frozen=True):
    """Where a stream is: before the item with this number of an epoch."""

    epoch: str
    number: int

    def as_id(self) -> str:
        """Return the text that `parse_position` reads."""
        return f"{self.epoch}-{self.number}"


def parse_position(text: str) -> Position:
    """Return the position of an id; for any other text, one that no feed has."""
    epoch, _, number = text.rpartition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MAX_DIGITS
    return Position(epoch, int(number)) if is_number else Position("", 0)


class Feed:
    """The newest items in order, as events that are encoded once for all streams."""

    def __init__(self) -> None:
        self._end = Position("", 0)
        self._events: deque[bytes] = deque(maxlen=KEPT_ITEMS)
        self._cached: tuple[Position, bytes] | None = None
        self._changed = asyncio.Event()
        self.started = asyncio.Event()

    @property
    def end(self) -> Position:
        """The position after the last item."""
        return self._end

    def extend(self, items: LiveItems) -> None:
        """Append items; another epoch, or a gap before them, takes the place of all others."""
        if Position(items.epoch, items.first) != self._end:
            self._events.clear()
        number = items.first
        for number, item in enumerate(items.items, start=items.first + 1):
            event_id = Position(items.epoch, number).as_id()
            self._events.append(encode_event(item.kind, event_id, item.body))
        has_changed = self._end != Position(items.epoch, number)
        self._end, self._cached = Position(items.epoch, number), None
        self.started.set()
        if has_changed:
            self.wake()

    def wake(self) -> None:
        """Wake all streams."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self) -> None:
        """Return at the next `wake`."""
        await self._changed.wait()

    def since(self, position: Position) -> bytes:
        """Return all events after a position; the first one tells how many are gone, if any."""
        if self._cached is None or self._cached[0] != position:
            self._cached = (position, self._encode_since(position))
        return self._cached[1]

    def _encode_since(self, position: Position) -> bytes:
        first = self._end.number - len(self._events)
        if position.epoch != self._end.epoch or position.number > self._end.number:
            return b"".join((self._missed(first, None), *self._events))
        if position.number < first:
            return b"".join((self._missed(first, first - position.number), *self._events))
        return b"".join(list(self._events)[position.number - first :])

    def _missed(self, first: int, count: int | None) -> bytes:
        body = msgspec.json.encode({"count": count})
        return encode_event(MISSED, Position(self._end.epoch, first).as_id(), body)
