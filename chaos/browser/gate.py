"""The network between a page and the service: forwards requests, or fails in a chosen way."""

import json
import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from enum import Enum
from http.server import BaseHTTPRequestHandler

import requests

from testing.browsers.http_servers import serving

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_FORWARD_TIMEOUT_S = 20
_SILENCE_S = 60
"""How long proxies wait for a reply by default. A page that was left no longer gives up its
requests, and a browser has few connections to a server: six of them may be all.
"""


class Mode(Enum):
    """What becomes of a request."""

    FORWARD = "forward"
    UNAVAILABLE = "503"
    RATE_LIMITED = "429"
    RESET = "reset"
    LOST_REPLY = "reply lost"
    PAGE = "page"
    """A page instead of a reply, with the status 200, as where a proxy has visitors sign in."""
    SILENT = "no reply"
    """No reply: the connection stays open until the browser gives up, or a proxy would."""


class Gate:
    """The state that a run changes while requests pass. `strips_ids` takes away what makes
    repetitions harmless: the test must then find events that are stored twice. `silenced` counts
    the requests that get no reply, `pages` those that get a page.
    """

    def __init__(self, target: str, *, strips_ids: bool = False) -> None:
        self.target = target
        self.mode = Mode.FORWARD
        self.strips_ids = strips_ids
        self.url = ""
        self.silenced = 0
        self.pages = 0

    def body_of(self, body: bytes) -> bytes:
        """Return what is forwarded of the body of a request."""
        if not self.strips_ids:
            return body
        items = json.loads(body)
        return json.dumps([{**item, "eventId": None} for item in items]).encode()


class _Handler(BaseHTTPRequestHandler):
    gate: Gate

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.gate.mode:
            case Mode.UNAVAILABLE:
                self._reply(503, b"", retry_after="1")
            case Mode.RATE_LIMITED:
                self._reply(429, b"", retry_after="1")
            case Mode.PAGE:
                self.gate.pages += 1
                self._reply(200, b"<!doctype html><title>Sign in</title>")
            case Mode.RESET:
                self._reset()
            case Mode.LOST_REPLY:
                self._forward(body)
                self._reset()
            case Mode.SILENT:
                self.gate.silenced += 1
                self.connection.settimeout(_SILENCE_S)
                with suppress(TimeoutError):
                    self.rfile.read(1)  # nothing, when the browser closes the connection
                self.close_connection = True
            case Mode.FORWARD:
                self._reply(*self._forward(body))

    def _forward(self, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": self.headers["Content-Type"]}
        try:
            with requests.Session() as session:
                session.trust_env = False
                reply = session.post(
                    self.gate.target + self.path,
                    self.gate.body_of(body),
                    headers=headers,
                    timeout=_FORWARD_TIMEOUT_S,
                )
        except requests.RequestException:
            return 502, b""  # the service is killed
        return reply.status_code, reply.content

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.connection.close()
        self.close_connection = True

    def _reply(self, status: int, body: bytes, *, retry_after: str = "") -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Expose-Headers", "Retry-After")
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def finish(self) -> None:
        """Send what is left, unless the connection was cut."""
        try:
            super().finish()
        except OSError:
            return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing."""
        del format, args


@contextmanager
def opened_gate(target: str, *, strips_ids: bool = False) -> Generator[Gate]:
    """Run a gate in front of the service at `target`."""
    gate = Gate(target, strips_ids=strips_ids)
    with serving(type("_GateHandler", (_Handler,), {"gate": gate})) as gate.url:
        yield gate
