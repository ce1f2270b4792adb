"""What workers and the engine say to each other over the engine's socket.

A frame is four bytes of length, big-endian, and a MessagePack message. A connection carries one
request at a time; to close it ends the request.
"""

import asyncio
import socket
from enum import Enum
from typing import TypeVar

import msgspec
from msgspec import Struct

from millrace.ports.limiter import RateVerdict
from millrace.ports.store import QueryGuards

LONGEST_SOCKET_PATH = 107
"""Bytes. The kernel keeps 108 for the path of a socket, with the zero at its end."""

MAX_FRAME_BYTES = 1_073_741_824
"""An answer is at most 128 MiB in the engine's memory; as JSON it may be several times longer."""

_LENGTH_BYTES = 4


class Select(Struct, frozen=True, tag="select"):
    """Run a SELECT over everything that is durable now; `parameters` as ClickHouse reads them."""

    sql: str
    parameters: dict[str, str]
    website_id: str
    guards: QueryGuards


class Hit(Struct, frozen=True, tag="hit"):
    """Count one call of a caller."""

    caller: str


class AskReady(Struct, frozen=True, tag="ask_ready"):
    """Tell whether a select would be answered now."""


class AwaitStored(Struct, frozen=True, tag="await_stored"):
    """Answer when everything that is durable now is in the store."""


class TakeSnapshot(Struct, frozen=True, tag="take_snapshot"):
    """Take a snapshot of the data directory; it stays until the connection is closed."""


Request = Select | Hit | AskReady | AwaitStored | TakeSnapshot


class Answer(Struct, frozen=True, tag="answer"):
    """The rows of a select: a JSON array for each row, one a line."""

    rows: bytes


class Verdict(Struct, frozen=True, tag="verdict"):
    """What became of a hit."""

    verdict: RateVerdict | None


class Readiness(Struct, frozen=True, tag="readiness"):
    """The answer to `AskReady`."""

    is_ready: bool


class Stored(Struct, frozen=True, tag="stored"):
    """The answer to `AwaitStored`."""


class SnapshotTaken(Struct, frozen=True, tag="snapshot_taken"):
    """The directory of the snapshot, and how many entries are below it."""

    path: str
    entries: int


class FailureKind(Enum):
    """Every way in which a select or a snapshot can fail."""

    TIMED_OUT = "timed_out"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"  # our own fault; the engine's log has the cause


class Failure(Struct, frozen=True, tag="failure"):
    """A select or a snapshot failed. `reason` never holds a value of a caller."""

    kind: FailureKind
    reason: str


Reply = Answer | Verdict | Readiness | Stored | SnapshotTaken | Failure

_Message = TypeVar("_Message")

_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_REPLIES: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


class BrokenConversation(Exception):
    """The other side ended within a message or sent what is not one."""


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read the next request, or None where the other side has ended.

    Raises `BrokenConversation`, or `OSError` of the socket.
    """
    return await _read(reader, _REQUESTS)


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """Read the reply to a request. Raises `BrokenConversation`, or `OSError` of the socket."""
    reply = await _read(reader, _REPLIES)
    if reply is None:
        raise BrokenConversation("the engine ended before it answered")
    return reply


async def write_message(writer: asyncio.StreamWriter, message: Request | Reply) -> None:
    """Send a message. Raises `OSError` of the socket."""
    body = _ENCODER.encode(message)
    writer.writelines((len(body).to_bytes(_LENGTH_BYTES, "big"), body))  # one write: one wake-up
    await writer.drain()


def ask_blocking(connection: socket.socket, request: Request) -> Reply:
    """Send a request and wait for its reply, where there is no event loop.

    Raises `BrokenConversation`, or `OSError` of the socket.
    """
    body = _ENCODER.encode(request)
    connection.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    with connection.makefile("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "big")
        try:
            return _REPLIES.decode(stream.read(min(length, MAX_FRAME_BYTES)))
        except msgspec.MsgspecError as error:
            raise BrokenConversation("the engine ended before it answered") from error


async def _read(
    reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[_Message]
) -> _Message | None:
    try:
        frame = await _read_frame(reader)
        return None if frame is None else decoder.decode(frame)
    except (asyncio.IncompleteReadError, msgspec.MsgspecError) as error:
        raise BrokenConversation("a message was cut off or is not one") from error


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    try:
        head = await reader.readexactly(_LENGTH_BYTES)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    length = int.from_bytes(head, "big")
    if length > MAX_FRAME_BYTES:
        raise BrokenConversation("a message is too long")
    return await reader.readexactly(length)
