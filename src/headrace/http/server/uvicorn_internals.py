"""The names of uvicorn that are not its public API, each with the reason for its use.

`connection` and `server` use no other internals. `test_uvicorn_internals.py` checks the tables
against the installed uvicorn and against our sources. Both can change with any release of uvicorn,
so pyproject.toml bounds its version: raise the bound when that test passes.
"""

from collections.abc import Mapping
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

__all__ = ["HttpToolsProtocol", "RequestResponseCycle", "ServerState"]

PROTOCOL_METHODS: Final[Mapping[str, str]] = {
    "connection_made": "checks the connection limit and installs our parser first",
    "connection_lost": "reports the disconnect to the active request too",
    "data_received": "handles known heads without parsing and applies the limits of a head",
    "eof_received": "answers the requests of a client that has closed its half",
    "on_message_begin": "starts the timeout of a head",
    "on_headers_complete": "ends the timeout and decides between fast path and ASGI",
    "on_body": "buffers the body of a request for the fast path",
    "on_message_complete": "starts the fast path, or lets uvicorn start ASGI",
    "on_response_complete": "starts the next pipelined request after a fast-path response",
    "shutdown": "ends a lingering close, for which a shutdown does not wait",
    "send_400_response": "sends the 400 after the responses to earlier requests",
    "_start_asgi_task": "learns which of the pipelined requests is being answered",
    "_unset_keepalive_if_required": "stops the keep-alive timer when a fast-path request arrives",
}
"""Methods of `HttpToolsProtocol` that `connection.HeadraceProtocol` overrides or calls."""

PROTOCOL_ATTRIBUTES: Final[Mapping[str, str]] = {
    "client": "address and port of the client",
    "connections": "all open connections of the server, for the connection limit",
    "cycle": "request and response of the last request; None before the first",
    "expect_100_continue": "cleared for HTTP/1.0, which has no Expect",
    "flow": "pauses reading while responses are not read",
    "headers": "headers of the current head, names in lower case",
    "loop": "clock of the timeouts",
    "parser": "replaced by `RequestParser`; None after the connection is lost",
    "pipeline": "queued requests, the newest first",
    "transport": "the socket",
    "url": "target of the current request line",
}
"""Attributes of a `HttpToolsProtocol` that `connection.HeadraceProtocol` reads or sets."""

CYCLE_ATTRIBUTES: Final[Mapping[str, str]] = {
    "disconnected": "set when the connection is lost",
    "keep_alive": "cleared to close the connection after the response",
    "message_event": "wakes the application that waits for the body or a disconnect",
    "response_complete": "whether the connection is free for the next request",
    "response_started": "whether a malformed body may still get a 400",
}
"""Attributes of a `RequestResponseCycle`. `fast_path.PendingRequest` has them too, because it
takes the place of a cycle in `HttpToolsProtocol.cycle`."""

ASGI_CYCLE_ATTRIBUTES: Final[Mapping[str, str]] = {
    "scope": "the path decides what a half-closed connection means",
    "transport": "replaced by `LingeringTransport`, so that a response closes with it",
    "waiting_for_100_continue": "whether the client may omit the body of a refused request",
}
"""Attributes of the `RequestResponseCycle` of a request that did not take the fast path."""

SERVER_STATE_ATTRIBUTES: Final[Mapping[str, str]] = {
    "connections": "all open connections, to close slow ones and to fail pending requests",
    "tasks": "running ASGI requests, which get some time to end after they were cancelled",
}
"""Attributes of `ServerState` that `server.serve` reads."""

SERVER_NAMES: Final[Mapping[str, str]] = {
    "capture_signals": "overridden, because the process and not the server handles signals",
    "serve": "runs the server on a socket that is already bound",
    "server_state": "see SERVER_STATE_ATTRIBUTES",
    "should_exit": "set to stop the server",
}
"""Names of `uvicorn.Server` that `server.serve` uses."""
