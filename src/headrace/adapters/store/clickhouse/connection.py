"""Connections to ClickHouse servers over their HTTP interface, and the meaning of their errors.

The only module that imports clickhouse-connect, and only when a connection is opened: the import
takes 0.2 s, and a machine with the embedded store need not have the package.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

from headrace.adapters.store.clickhouse.address import ClickHouseAddress, Host
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import EncodedParameters
from headrace.adapters.store.dialect.results import RESULT_FORMAT, decode_rows
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger

CONNECT_TIMEOUT_S: Final = 3

_OPENING_TIMEOUT_S: Final = 5
"""For the statements with which the client for event loops begins; they take milliseconds."""

_RESPONSE_BUFFER_BYTES: Final = 1_073_741_824
"""A server keeps a response in memory until its statement has ended: more than any response has.

What does not fit goes to the server's disk. Where that is full the server cuts off the response, to
nothing without a buffer, and reports success.
"""

NO_RESPONSE: Final = -1
"""The code of a failure that no server reported: it is away, or the connection broke."""

NO_RESPONSE_IN_TIME: Final = "NO_RESPONSE_IN_TIME"
"""The name of a failure of a host that took the request and did not respond within the timeout."""

_CONNECTION_ERROR_NAMES: Final[Mapping[str, str]] = {
    "Connection refused": "CONNECTION_REFUSED",
    "Connect call failed": "CONNECTION_FAILED",
    "Name or service not known": "UNKNOWN_HOST",
    "certificate verify failed": "CERTIFICATE_REFUSED",
    "wrong version number": "NO_TLS",
    "record layer failure": "NO_TLS",
    "BadStatusLine": "NO_HTTP",
    "Connection reset": "CONNECTION_RESET",
    "Remote end closed": "CONNECTION_CLOSED",
    "Server disconnected": "CONNECTION_CLOSED",
    "Read timed out": NO_RESPONSE_IN_TIME,
    "timed out": "TIMED_OUT",
}
"""The cause in the log, by a part of the system's own message."""

_UNKNOWN_CODE: Final = 0

_BROKEN_DISK: Final = frozenset({75, 76, 1001})
"""CANNOT_WRITE_TO_FILE_DESCRIPTOR, CANNOT_OPEN_FILE and errors of the system.

A server whose disk is read-only takes no connection of the client: its first responses go through a
file.
"""

_SERVER_MEMORY_EXCEEDED = "(total) memory limit exceeded"
_ResultT = TypeVar("_ResultT")


class SyncClient(Protocol):
    """The part of clickhouse-connect's blocking client that is used here."""

    database: str | None

    def command(self, cmd: str, *, settings: dict[str, Any] | None = None) -> object:
        """Run a statement."""
        ...

    def raw_query(
        self, query: str, parameters: dict[str, Any], *, settings: dict[str, Any], fmt: str
    ) -> bytes:
        """Run a SELECT and return the body of the response."""
        ...

    def raw_insert(
        self,
        table: str,
        column_names: Sequence[str] | None,
        insert_block: bytes,
        settings: dict[str, Any],
        fmt: str,
    ) -> object:
        """Insert rows that are encoded in the format `fmt`.

        `table` is the text between INSERT INTO and FORMAT where `column_names` is None.
        """
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class AsyncClient(Protocol):
    """The part of clickhouse-connect's client for event loops that is used here."""

    async def command(self, cmd: str) -> object:
        """Run a statement."""
        ...

    async def raw_query(
        self, query: str, parameters: dict[str, Any], *, settings: dict[str, Any], fmt: str | None
    ) -> bytes:
        """Run a SELECT and return the body of the response."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class _EncodedParameter:
    """An encoded parameter: the client binds the `str()` of a type that it does not know."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def bind_parameters(parameters: EncodedParameters) -> dict[str, Any]:
    """Return parameters as the clients send them: the server binds them, not the SQL text."""
    return {name: _EncodedParameter(text) for name, text in parameters.items()}


def open_sync_client(
    address: ClickHouseAddress, host: Host, *, read_timeout_s: float
) -> SyncClient:
    """Connect for one thread. Raises `ClickHouseError`."""
    _silence_library_loggers()
    from clickhouse_connect.driver import (  # noqa: PLC0415 - see the module docstring
        create_client,  # pyright: ignore[reportUnknownVariableType] - its **kwargs have no type
    )

    with _opening():
        client = create_client(
            **_options(address, host, read_timeout_s), dedicated_pool=True, compress=False
        )
    return cast("SyncClient", client)


async def open_async_client(
    address: ClickHouseAddress, host: Host, *, read_timeout_s: float, connections: int
) -> AsyncClient:
    """Connect for one event loop; all its tasks may use the client. Raises `ClickHouseError`."""
    _silence_library_loggers()
    from clickhouse_connect.driver import (  # noqa: PLC0415 - see the module docstring
        asyncclient,  # before the timeout, of which a busy machine needs a part to import it
        create_async_client,  # pyright: ignore[reportUnknownVariableType] - as above
    )

    del asyncclient
    try:
        async with asyncio.timeout(_OPENING_TIMEOUT_S):
            with _opening():
                client = await create_async_client(
                    **_options(address, host, read_timeout_s),
                    database=address.database,
                    compress=False,
                    connector_limit=connections,
                    connector_limit_per_host=connections,
                )
    except TimeoutError as error:
        message = f"no response within {_OPENING_TIMEOUT_S} s"
        raise ClickHouseError(NO_RESPONSE, NO_RESPONSE_IN_TIME, message) from error
    return cast("AsyncClient", client)


def _silence_library_loggers() -> None:
    """Keep the client's own lines out of the log: its errors are raised, and logged by callers."""
    for library in ("clickhouse_connect", "urllib3.connectionpool"):
        logging.getLogger(library).setLevel(logging.CRITICAL)


def _options(address: ClickHouseAddress, host: Host, read_timeout_s: float) -> Mapping[str, Any]:
    return {
        "host": host.name,
        "port": host.port,
        "interface": "https" if address.is_secure else "http",
        "username": address.user,
        "password": address.password,
        "connect_timeout": CONNECT_TIMEOUT_S,
        "send_receive_timeout": read_timeout_s,
        "query_retries": 0,  # the caller decides what to retry, and on which host
        "autogenerate_session_id": False,  # a session would run one query at a time
        "show_clickhouse_errors": "scrub",
        "client_name": "headrace",
        "settings": {"buffer_size": _RESPONSE_BUFFER_BYTES},
        **({"ca_cert": address.ca_file} if address.ca_file else {}),
    }


@contextlib.contextmanager
def translate_client_errors() -> Generator[None]:
    """Turn the client's errors into `ClickHouseError`, without the values that they may quote."""
    from clickhouse_connect.driver.exceptions import (  # noqa: PLC0415 - see the module docstring
        Error,
        ProgrammingError,
    )

    try:
        yield
    except ProgrammingError as error:  # raised before the request: a closed client, a setting
        raise ClickHouseError(_UNKNOWN_CODE, "REFUSED_BY_CLIENT", str(error)) from None
    except Error as error:
        if not error.code:
            raise connection_error(str(error.__cause__ or error)) from None
        raise _server_error(error.code, error.name, str(error)) from None
    except OSError as error:  # a certificate file, or a socket
        raise connection_error(str(error)) from None


@contextlib.contextmanager
def _opening() -> Generator[None]:
    """Turn the client's errors into `ClickHouseError`; a broken server counts as away."""
    try:
        with translate_client_errors():
            yield
    except ClickHouseError as failure:
        if failure.code not in _BROKEN_DISK:
            raise
        raise ClickHouseError(NO_RESPONSE, failure.name, str(failure)) from None


def connection_error(message: str) -> ClickHouseError:
    """Return the error for a request that got no response, named by its cause where known."""
    names = (name for part, name in _CONNECTION_ERROR_NAMES.items() if part in message)
    return ClickHouseError(NO_RESPONSE, next(names, "NO_ANSWER"), message)


def _server_error(code: int, name: str | None, message: str) -> ClickHouseError:
    if _SERVER_MEMORY_EXCEEDED in message:
        return ClickHouseError(_UNKNOWN_CODE, "NO_MEMORY", message)
    return ClickHouseError(code, name or "UNKNOWN", message)


class SyncClientPool:
    """The hosts of an address, for one thread: one is used until it fails, then the next.

    Constructing it opens nothing.
    """

    def __init__(self, address: ClickHouseAddress, *, read_timeout_s: float) -> None:
        self._address = address
        self._read_timeout_s = read_timeout_s
        self._clients: dict[Host, SyncClient] = {}
        self._hosts = list(address.hosts)

    def run_on_any(self, work: Callable[[SyncClient], _ResultT]) -> _ResultT:
        """Run `work` on the first host that responds; it may have run on an earlier one, too.

        Raises `ClickHouseError` that a server reported, `StoreUnavailable` when no host responds.
        A host that took the request and did not respond in time fails the call: what keeps it
        busy, such as a dead Keeper, would keep the others busy as long. The next call begins with
        the next host.
        """
        reasons: list[str] = []
        for host in tuple(self._hosts):
            try:
                return self.run_on(host, work)
            except ClickHouseError as failure:
                if failure.code != NO_RESPONSE:
                    raise
                reasons.append(f"{host}: {failure.name}")
                get_logger().warning("clickhouse_away", host=str(host), reason=failure.name)
                self.begin_with_next_host()
                if failure.name == NO_RESPONSE_IN_TIME:
                    raise StoreUnavailable(
                        f"no ClickHouse server responds: {host} took the request and sent nothing "
                        f"for {self._read_timeout_s:g} s"
                    ) from failure
        raise StoreUnavailable(f"no ClickHouse server responds ({', '.join(reasons)})")

    def begin_with_next_host(self) -> None:
        """Begin the next call with another host: the first one may be the cause of a failure."""
        self._hosts.append(self._hosts.pop(0))

    def run_on(self, host: Host, work: Callable[[SyncClient], _ResultT]) -> _ResultT:
        """Run `work` on this host. Raises `ClickHouseError`."""
        if host not in self._clients:
            self._clients[host] = open_sync_client(
                self._address, host, read_timeout_s=self._read_timeout_s
            )
        try:
            with translate_client_errors():
                return work(self._clients[host])
        except ClickHouseError as failure:
            if failure.code == NO_RESPONSE:
                self._clients.pop(host).close()
            raise

    def close(self) -> None:
        """Close all connections. May be called twice."""
        while self._clients:
            self._clients.popitem()[1].close()


def query_rows(
    client: SyncClient,
    sql: str,
    parameters: EncodedParameters | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[list[Any]]:
    """Run an internal SELECT and return its rows."""
    return decode_rows(
        client.raw_query(
            sql,
            bind_parameters(parameters or EncodedParameters({})),
            settings=dict(settings or {}),
            fmt=RESULT_FORMAT,
        )
    )


class AsyncClientPool:
    """The hosts of an address, for one event loop: one is used until it fails, then the next.

    Constructing it opens nothing.
    """

    def __init__(
        self, address: ClickHouseAddress, *, read_timeout_s: float, connections: int
    ) -> None:
        self._address = address
        self._read_timeout_s = read_timeout_s
        self._connections = connections
        self._clients: dict[Host, AsyncClient] = {}
        self._hosts = list(address.hosts)

    async def run_on_any(self, work: Callable[[AsyncClient], Awaitable[_ResultT]]) -> _ResultT:
        """Run `work` on the first host that responds; it may have run on an earlier one, too.

        Raises `ClickHouseError` that a server reported, `StoreUnavailable` when no host responds.
        A caller that gives up a host which took its request calls `avoid`.
        """
        reasons: list[str] = []
        for host in tuple(self._hosts):
            try:
                with translate_client_errors():
                    return await work(await self._client(host))
            except ClickHouseError as failure:
                if failure.code != NO_RESPONSE:
                    raise
                reasons.append(f"{host}: {failure.name}")
            self._begin_after(host)
        raise StoreUnavailable(f"no ClickHouse server responds ({', '.join(reasons)})")

    def avoid(self, client: AsyncClient) -> None:
        """Begin the next call with another host: that of `client` took a request and is silent."""
        if self._clients.get(self._hosts[0]) is client:
            self._begin_after(self._hosts[0])

    async def close(self) -> None:
        """Close all connections. May be called twice."""
        while self._clients:
            await self._clients.popitem()[1].close()

    def _begin_after(self, host: Host) -> None:
        if self._hosts[0] == host:  # another task may have moved on already
            self._hosts.append(self._hosts.pop(0))

    async def _client(self, host: Host) -> AsyncClient:
        if host not in self._clients:
            try:
                client = await open_async_client(
                    self._address,
                    host,
                    read_timeout_s=self._read_timeout_s,
                    connections=self._connections,
                )
            except asyncio.CancelledError:
                self._begin_after(host)  # it may be silent
                raise
            if host in self._clients:  # another task opened one meanwhile
                await client.close()
            else:
                self._clients[host] = client
        return self._clients[host]
