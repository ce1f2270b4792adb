"""Messages on the Unix socket between workers and the engine process.

A frame is a length of four bytes, big-endian, and a MessagePack message. A connection carries one
request at a time; closing it cancels the request.
"""

import asyncio
import socket
from abc import abstractmethod
from typing import Final, Generic, TypeVar, cast

import msgspec

from headrace.adapters.engine.ipc.messages import IpcReply, IpcRequest
from headrace.base.logs import get_logger

MAX_FRAME_BYTES: Final = 1_073_741_824
"""A result takes at most 128 MiB in chDB's memory; as JSON it can be several times longer."""

_LENGTH_BYTES = 4
_MessageT = TypeVar("_MessageT")

_ENCODER = msgspec.msgpack.Encoder()
REQUEST_DECODER: msgspec.msgpack.Decoder[IpcRequest] = msgspec.msgpack.Decoder(IpcRequest)
REPLY_DECODER: msgspec.msgpack.Decoder[IpcReply] = msgspec.msgpack.Decoder(IpcReply)


class ProtocolError(Exception):
    """The peer closed the connection within a message, or sent an invalid one."""


class FrameBuffer:
    """Assembles the frames of a connection. The peer sends one at a time and awaits the reply."""

    def __init__(self) -> None:
        self._received: bytes | bytearray = b""

    def feed(self, piece: bytes) -> memoryview | None:
        """Return the message of the frame that these bytes complete, or None.

        Raises `ProtocolError` for a frame that is too long, or bytes after it.
        """
        if self._received:
            self._received += piece
        else:
            self._received = piece  # usually a complete frame
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
    """One end of a connection, on an event loop. An invalid message is logged and aborts it.

    Not by asyncio's streams, which take several iterations of the event loop for a message.
    """

    def __init__(self, messages: msgspec.msgpack.Decoder[_MessageT]) -> None:
        self._messages = messages
        self._frames = FrameBuffer()
        self._transport: asyncio.Transport

    @abstractmethod
    def receive(self, message: _MessageT) -> None:
        """Handle the next message. Raises `ProtocolError` where none was expected."""

    @property
    def is_closing(self) -> bool:
        """Whether the connection is closed or closing."""
        return self._transport.is_closing()

    def send(self, message: IpcRequest | IpcReply) -> None:
        """Send a message; does nothing on a closed connection."""
        if not self.is_closing:
            body = _ENCODER.encode(message)
            self._transport.writelines((len(body).to_bytes(_LENGTH_BYTES, "big"), body))

    def close(self) -> None:
        """Close the connection after the sent messages. May be called twice."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport; called by the event loop."""
        self._transport = cast(
            "asyncio.Transport", transport
        )  # a Unix socket has a stream transport

    def data_received(self, data: bytes) -> None:
        """Handle received bytes; called by the event loop."""
        try:
            frame = self._frames.feed(data)
            if frame is not None:
                self.receive(self._messages.decode(frame))
        except (ProtocolError, msgspec.MsgspecError) as error:
            get_logger().warning("engine_message_invalid", reason=str(error))
            self._transport.abort()


def send_request_blocking(connection: socket.socket, request: IpcRequest) -> IpcReply:
    """Send a request and wait for its reply, without an event loop.

    Raises `ProtocolError`, or `OSError` of the socket.
    """
    body = _ENCODER.encode(request)
    connection.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    with connection.makefile("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "big")
        try:
            return REPLY_DECODER.decode(stream.read(min(length, MAX_FRAME_BYTES)))
        except msgspec.MsgspecError as error:
            raise ProtocolError("the engine closed the connection before its reply") from error
