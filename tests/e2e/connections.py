"""Raw TCP connections: incomplete requests, and checks that a server still listens."""

import socket
from contextlib import closing

from testing.service import Service

TIMEOUT_S = 30
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def connect(service: Service) -> socket.socket:
    """Open a connection to the service."""
    return socket.create_connection(("127.0.0.1", service.port), timeout=TIMEOUT_S)


def send_partial_body(connection: socket.socket, website: str, *, part: bytes, size: int) -> None:
    """Send the headers of an event request and part of its body.

    The service sends `100 Continue` when it begins to read the body, so on return the request is in
    progress.
    """
    head = f"POST /track?website_id={website} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {size}\r\n"
    connection.sendall(f"{head}\r\n".encode())
    interim = b""
    while len(interim) < len(CONTINUE):
        chunk = connection.recv(len(CONTINUE) - len(interim))
        assert chunk, f"the connection ended after {interim!r}"
        interim += chunk
    assert interim == CONTINUE
    connection.sendall(part)


def encode_head(request: str, *fields: tuple[str, str]) -> bytes:
    """Encode the head of a request; a field may come twice. `request` is the method and target."""
    lines = [f"{request} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in fields]
    return "\r\n".join([*lines, "", ""]).encode()


def read_all(connection: socket.socket) -> bytes:
    """Return all bytes up to the end of the stream."""
    received = b""
    while chunk := connection.recv(65_536):
        received += chunk
    return received


def accepts_connections(service: Service) -> bool:
    """Return whether the service accepts a new connection."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", service.port)) == 0
