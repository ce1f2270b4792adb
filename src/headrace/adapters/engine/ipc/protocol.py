"""What workers and the engine say to each other over the engine's socket.

A frame is four bytes of length, big-endian, and a MessagePack message. A connection carries one
request at a time; to close it ends the request.
"""

import asyncio
import socket
from abc import abstractmethod
from enum import Enum
from typing import Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from headrace.ports.rate_limiter import RateLimitResult
from headrace.ports.store import QueryLimits

MAX_FRAME_BYTES = 1_073_741_824
"""An answer is at most 128 MiB in the engine's memory; as JSON it may be several times longer."""

_LENGTH_BYTES = 4


class RunSelect(Struct, frozen=True, tag="select"):
    """Run a SELECT over everything that is durable now; `parameters` as ClickHouse reads them."""

    sql: str
    parameters: dict[str, str]
    website_id: str
    limits: QueryLimits


class CountCall(Struct, frozen=True, tag="hit"):
    """Count one call of a caller."""

    caller: str


class CheckReady(Struct, frozen=True, tag="ask_ready"):
    """Tell whether a select would be answered now."""


class WaitStored(Struct, frozen=True, tag="await_stored"):
    """Answer when everything that is durable now is in the store."""


class TakeSnapshot(Struct, frozen=True, tag="take_snapshot"):
    """Take a snapshot of the data directory; it stays until the connection is closed."""


IpcRequest = RunSelect | CountCall | CheckReady | WaitStored | TakeSnapshot


class SelectResult(Struct, frozen=True, tag="answer"):
    """The rows of a select: a JSON array for each row, one a line."""

    rows: bytes


class CallCounted(Struct, frozen=True, tag="verdict"):
    """What became of a hit."""

    verdict: RateLimitResult | None


class Readiness(Struct, frozen=True, tag="readiness"):
    """The answer to `CheckReady`."""

    is_ready: bool


class Stored(Struct, frozen=True, tag="stored"):
    """The answer to `WaitStored`."""


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


IpcReply = SelectResult | CallCounted | Readiness | Stored | SnapshotTaken | Failure

_MessageT = TypeVar("_MessageT")

_ENCODER = msgspec.msgpack.Encoder()
REQUEST_DECODER: msgspec.msgpack.Decoder[IpcRequest] = msgspec.msgpack.Decoder(IpcRequest)
REPLY_DECODER: msgspec.msgpack.Decoder[IpcReply] = msgspec.msgpack.Decoder(IpcReply)


class ProtocolError(Exception):
    """The other side ended within a message or sent what is not one."""


class FrameBuffer:
    """Puts the frames of a connection together. One comes at a time: each is waited for."""

    def __init__(self) -> None:
        self._received: bytes | bytearray = b""

    def feed(self, piece: bytes) -> memoryview | None:
        """Return the message of the frame that these bytes have made whole, or None.

        Raises `ProtocolError` for a frame that is too long, or what follows one.
        """
        if self._received:
            self._received += piece
        else:
            self._received = piece  # nearly always the whole frame
        received = self._received
        if len(received) < _LENGTH_BYTES:
            return None
        size = int.from_bytes(received[:_LENGTH_BYTES], "big")
        if size > MAX_FRAME_BYTES or len(received) > _LENGTH_BYTES + size:
            raise ProtocolError("a message is too long")
        if len(received) < _LENGTH_BYTES + size:
            if isinstance(received, bytes):
                self._received = bytearray(received)
            return None
        self._received = b""
        return memoryview(received)[_LENGTH_BYTES:]


class FramedConnection(asyncio.Protocol, Generic[_MessageT]):
    """One end of a connection, on an event loop. What is no message ends it.

    Not by streams, whose readers and writers take several turns of the event loop for a message.
    """

    def __init__(self, messages: msgspec.msgpack.Decoder[_MessageT]) -> None:
        self._messages = messages
        self._frames = FrameBuffer()
        self._transport: asyncio.Transport

    @abstractmethod
    def receive(self, message: _MessageT) -> None:
        """Take the next message. Raises `ProtocolError` where none was expected."""

    @property
    def is_closing(self) -> bool:
        """Whether no more can be sent."""
        return self._transport.is_closing()

    def send(self, message: IpcRequest | IpcReply) -> None:
        """Send a message; nothing where the conversation is over."""
        if not self.is_closing:
            body = _ENCODER.encode(message)
            self._transport.writelines((len(body).to_bytes(_LENGTH_BYTES, "big"), body))

    def close(self) -> None:
        """End it, once what was sent is gone. May be called twice."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)  # that of a stream

    def data_received(self, data: bytes) -> None:
        """Take some bytes; called by the event loop."""
        try:
            frame = self._frames.feed(data)
            if frame is not None:
                self.receive(self._messages.decode(frame))
        except (ProtocolError, msgspec.MsgspecError):
            self._transport.abort()


def send_request_blocking(connection: socket.socket, request: IpcRequest) -> IpcReply:
    """Send a request and wait for its reply, where there is no event loop.

    Raises `ProtocolError`, or `OSError` of the socket.
    """
    body = _ENCODER.encode(request)
    connection.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    with connection.makefile("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "big")
        try:
            return REPLY_DECODER.decode(stream.read(min(length, MAX_FRAME_BYTES)))
        except msgspec.MsgspecError as error:
            raise ProtocolError("the engine ended before it answered") from error
