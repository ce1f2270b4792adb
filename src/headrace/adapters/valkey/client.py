"""Connections to the Valkey or Redis server that machines share, and scripts that run in it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NewType, Protocol, cast

from valkey import Valkey, ValkeyError
from valkey import asyncio as valkey_asyncio
from valkey.asyncio.retry import Retry as AsyncRetry
from valkey.backoff import NoBackoff
from valkey.exceptions import ConnectionError as ConnectionLost
from valkey.exceptions import ReadOnlyError
from valkey.retry import Retry

from headrace.adapters.valkey.address import parse_valkey_address
from headrace.base.errors import SharedStateUnavailable

PREFIX = "headrace:"
"""Of every key. Two services that share a server use two databases of it (`…/1`)."""

COPY_IN_USE = "COPY"
"""The error of a script when two machines have the same ledger identity."""

Argument = bytes | str | int | float

Script = NewType("Script", str)
"""The text of a Lua script. The server runs it atomically."""

TIMEOUT_S = 1.0
"""Of a connection and of a command, where a request waits: beyond it the server counts as away."""

_RETRIED_ERRORS = (ConnectionLost, ReadOnlyError)
"""Retried once, on a new connection. After a failover the server's name leads to another one, while
the old server, now a replica, keeps its connections and refuses all writes.
"""

_BATCH_TIMEOUT_S = 5.0
_MAX_CONNECTIONS = 64


class _BlockingLibraryClient(Protocol):
    """The part of the library's blocking client that is used; its own types are incomplete."""

    execute_command: Callable[..., Any]
    register_script: Callable[[str], Callable[..., Any]]

    def close(self) -> None: ...


class _AsyncLibraryClient(Protocol):
    execute_command: Callable[..., Awaitable[Any]]
    register_script: Callable[[str], Callable[..., Awaitable[Any]]]

    def aclose(self, close_connection_pool: bool | None = None) -> Awaitable[None]: ...


class ValkeyClient:
    """One connection for a blocking thread. Connects at the first command and after failures."""

    def __init__(self, url: str) -> None:
        address = parse_valkey_address(url)
        self._client = cast(
            "_BlockingLibraryClient",
            Valkey.from_url(  # pyright: ignore[reportUnknownMemberType] - the library's own gap
                address.url,
                **address.tls,
                socket_timeout=_BATCH_TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                retry=Retry(NoBackoff(), 1),
                retry_on_error=list(_RETRIED_ERRORS),
            ),
        )
        self._registered: dict[Script, Callable[..., Any]] = {}

    def run(self, script: Script, keys: Sequence[Argument], arguments: Sequence[Argument]) -> Any:  # noqa: ANN401 - only the caller knows what its script returns
        """Run a script, which must be safe to run twice. Raises `SharedStateUnavailable`."""
        if (registered := self._registered.get(script)) is None:
            registered = self._registered[script] = self._client.register_script(script)
        try:
            return registered(keys=keys, args=arguments)
        except (ValkeyError, OSError) as error:
            raise _unavailable(error) from error

    def execute(self, *command: Argument) -> Any:  # noqa: ANN401 - only the caller knows the reply
        """Run one command, which must be safe to run twice. Raises `SharedStateUnavailable`."""
        try:
            return self._client.execute_command(*command)
        except (ValkeyError, OSError) as error:
            raise _unavailable(error) from error

    def close(self) -> None:
        """Close the connection. May be called twice."""
        self._client.close()


class AsyncValkeyClient:
    """Connections for one event loop, opened as they are needed."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        address = parse_valkey_address(url)
        self.pool = valkey_asyncio.BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType] - the library's own gap
            address.url,
            **address.tls,
            max_connections=_MAX_CONNECTIONS,
            timeout=timeout_s,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=AsyncRetry(NoBackoff(), 1),
            retry_on_error=list(_RETRIED_ERRORS),
        )
        self._client = cast("_AsyncLibraryClient", valkey_asyncio.Valkey(connection_pool=self.pool))
        self._registered: dict[Script, Callable[..., Awaitable[Any]]] = {}

    async def run(
        self, script: Script, keys: Sequence[Argument], arguments: Sequence[Argument]
    ) -> Any:  # noqa: ANN401 - only the caller knows what its script returns
        """Run a script, which must be safe to run twice. Raises `SharedStateUnavailable`."""
        if (registered := self._registered.get(script)) is None:
            registered = self._registered[script] = self._client.register_script(script)
        try:
            return await registered(keys=keys, args=arguments)
        except (ValkeyError, OSError) as error:
            raise _unavailable(error) from error

    async def is_ready(self) -> bool:
        """Return whether the server takes writes. Never raises.

        A full server and a replica reply to PING, and every query needs a write. This one changes
        nothing: the key does not exist.
        """
        try:
            await self._client.execute_command("SET", f"{PREFIX}ready", "", "XX")
        except (ValkeyError, OSError):
            return False
        return True

    async def close(self) -> None:
        """Close the connections. May be called twice."""
        await self._client.aclose(close_connection_pool=True)
        await self.pool.disconnect()


def _unavailable(error: Exception) -> SharedStateUnavailable:
    if str(error) == COPY_IN_USE:
        return SharedStateUnavailable(
            "another machine uses a copy of this data directory: stop one of the two and start it "
            "with an empty directory"
        )
    return SharedStateUnavailable(f"the shared server cannot be used: {error}")
