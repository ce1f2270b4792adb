"""Connections to the Valkey or Redis server that machines share, and scripts that run in it."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from valkey import Valkey, ValkeyError
from valkey import asyncio as valkey_asyncio
from valkey.asyncio.retry import Retry as AsyncRetry
from valkey.backoff import NoBackoff
from valkey.exceptions import ConnectionError as ConnectionLost
from valkey.exceptions import NoScriptError
from valkey.retry import Retry

from headrace.base.errors import OperatorError, SharedStateUnavailable

PREFIX = "headrace:"
"""All keys begin so. Two services that must not meet take two databases of a server (`…/1`)."""

COPY_IN_USE = "COPY"
"""What scripts say where two machines have one identity."""

Argument = bytes | str | int | float

_SCHEMES = {"valkey": "valkey", "valkeys": "valkeys", "redis": "valkey", "rediss": "valkeys"}
_TIMEOUT_S = 1.0
_BATCH_TIMEOUT_S = 5.0
_MAX_CONNECTIONS = 64


class Script:
    """A script in Lua: one step for the server, whoever else asks for one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class _BlockingLibraryClient(Protocol):
    """What is used of the library's blocking client, whose own types say less."""

    execute_command: Callable[..., Any]

    def close(self) -> None: ...


class _AsyncLibraryClient(Protocol):
    execute_command: Callable[..., Awaitable[Any]]

    def aclose(self, close_connection_pool: bool | None = None) -> Awaitable[None]: ...


def normalize_url(url: str) -> str:
    """Return the URL as the library reads it. Raises `OperatorError`, without quoting a secret."""
    scheme, _, rest = url.partition("://")
    if scheme not in _SCHEMES or not _has_host(url):
        raise OperatorError(
            "the shared server's URL must be valkey://HOST:PORT, valkeys://, redis:// or "
            "rediss://; in a password write %40 for @, %23 for # and so on"
        )
    return f"{_SCHEMES[scheme]}://{rest}"


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class ValkeyClient:
    """One connection for a blocking thread. Connects when first asked, and again after failures."""

    def __init__(self, url: str) -> None:
        self._client = cast(
            "_BlockingLibraryClient",
            Valkey.from_url(  # pyright: ignore[reportUnknownMemberType] - the library's own gap
                normalize_url(url),
                socket_timeout=_BATCH_TIMEOUT_S,
                socket_connect_timeout=_TIMEOUT_S,
                retry=Retry(NoBackoff(), 1),
                retry_on_error=[ConnectionLost],
            ),
        )

    def run(self, script: Script, keys: Sequence[Argument], arguments: Sequence[Argument]) -> Any:  # noqa: ANN401 - what a script returns, only its caller knows
        """Run a script, which must be safe to run twice. Raises `SharedStateUnavailable`."""
        rest = (len(keys), *keys, *arguments)
        try:
            try:
                return self._client.execute_command("EVALSHA", script.digest, *rest)
            except NoScriptError:
                return self._client.execute_command("EVAL", script.text, *rest)
        except (ValkeyError, OSError) as error:
            raise _unavailable(error) from error

    def execute(self, *command: Argument) -> Any:  # noqa: ANN401
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

    def __init__(self, url: str) -> None:
        self.pool = valkey_asyncio.BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType] - the library's own gap
            normalize_url(url),
            max_connections=_MAX_CONNECTIONS,
            timeout=_TIMEOUT_S,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=AsyncRetry(NoBackoff(), 1),
            retry_on_error=[ConnectionLost],
        )
        self._client = cast("_AsyncLibraryClient", valkey_asyncio.Valkey(connection_pool=self.pool))

    async def run(
        self, script: Script, keys: Sequence[Argument], arguments: Sequence[Argument]
    ) -> Any:  # noqa: ANN401 - what a script returns, only its caller knows
        """Run a script, which must be safe to run twice. Raises `SharedStateUnavailable`."""
        rest = (len(keys), *keys, *arguments)
        try:
            try:
                return await self._client.execute_command("EVALSHA", script.digest, *rest)
            except NoScriptError:
                return await self._client.execute_command("EVAL", script.text, *rest)
        except (ValkeyError, OSError) as error:
            raise _unavailable(error) from error

    async def is_ready(self) -> bool:
        """Tell whether the server answers. Never raises."""
        try:
            await self._client.execute_command("PING")
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
            "another machine uses a copy of this data directory: stop one of the two, and let it "
            "begin with an empty directory"
        )
    return SharedStateUnavailable(f"the shared server cannot be used: {error}")
