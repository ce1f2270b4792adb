"""The engine's end of its socket: answers the workers' selects and counts their callers."""

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, assert_never
from weakref import WeakSet

from headrace.adapters.backup.snapshots import Snapshot
from headrace.adapters.data_dir.runtime_directory import LONGEST_SOCKET_PATH
from headrace.adapters.engine.ipc.protocol import (
    REQUESTS,
    Answer,
    AskReady,
    AwaitStored,
    BrokenConversation,
    Conversation,
    Failure,
    FailureKind,
    Hit,
    Readiness,
    Reply,
    Request,
    Select,
    SnapshotTaken,
    Stored,
    TakeSnapshot,
    Verdict,
)
from headrace.adapters.query_scheduler.coalescing_executor import SharedSelects
from headrace.adapters.query_scheduler.key import Question
from headrace.adapters.store.dialect.errors import EngineFailure
from headrace.adapters.store.dialect.parameters import ParameterTexts
from headrace.base.errors import OperatorError, QueryTimedOut, QueryTooLarge, StoreUnavailable
from headrace.base.telemetry import Logger
from headrace.ports.rate_limiter import Limiter
from headrace.ports.store import QueryGuards

_Answered: TypeAlias = Select | Hit | AskReady | AwaitStored


class SelectRunner(Protocol):
    """What runs selects: `ChdbReader`."""

    async def select(
        self, sql: str, parameters: ParameterTexts, guards: QueryGuards, query_id: str
    ) -> bytes:
        """Run one SELECT; cancelling the caller ends it, and returns when it has ended."""
        ...


class SnapshotTaker(Protocol):
    """What takes snapshots: `LiveSnapshots`."""

    async def take(self) -> Snapshot:
        """Take one. Raises `OperatorError`."""
        ...

    async def remove(self, snapshot: Path) -> None:
        """Remove one. Never raises."""
        ...


class _Asked(Conversation[Request]):
    """The engine's end of a connection. Who hangs up ends what was asked, but not a snapshot."""

    def __init__(self, answer: Callable[[Request, "_Asked"], Coroutine[Any, Any, None]]) -> None:
        super().__init__(REQUESTS)
        self._answer = answer
        self._request: Request | None = None
        self.answering: asyncio.Task[None] | None = None
        self.is_left = asyncio.Event()

    def receive(self, message: Request) -> None:
        """Answer a request."""
        if self.answering is not None and not self.answering.done():
            raise BrokenConversation("something was asked before the answer")
        self._request = message
        self.answering = asyncio.create_task(self._answer(message, self))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - not told apart
        """End; called by the event loop."""
        self.is_left.set()
        if self.answering is not None and not isinstance(self._request, TakeSnapshot):
            self.answering.cancel()


class EngineServer:
    """Serves one Unix socket on one event loop; `shared` decides which selects `runner` runs.

    `load_barrier` returns when everything that was durable when it was called is in the store, or
    raises `StoreUnavailable`.
    """

    def __init__(
        self,
        *,
        socket: Path,
        runner: SelectRunner,
        shared: SharedSelects[bytes],
        limiter: Limiter,
        load_barrier: Callable[[], Awaitable[None]],
        is_ready: Callable[[], bool],
        snapshots: SnapshotTaker,
        log: Logger,
    ) -> None:
        self._socket = socket
        self._runner = runner
        self._shared = shared
        self._limiter = limiter
        self._load_barrier = load_barrier
        self._is_ready = is_ready
        self._snapshots = snapshots
        self._log = log
        self._query_ids = (f"{os.getpid()}-{number}" for number in itertools.count(1))
        self._conversations: WeakSet[_Asked] = WeakSet()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen. The socket's directory is made, and only its owner may enter it.

        Raises `OperatorError` when that cannot be.
        """
        if len(os.fsencode(self._socket)) > LONGEST_SOCKET_PATH:
            raise OperatorError(
                f"the path of the engine's socket {self._socket} is longer than "
                f"{LONGEST_SOCKET_PATH} bytes"
            )
        try:
            self._socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._socket.unlink(missing_ok=True)  # what a killed engine left behind
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(self._converse, str(self._socket))
            self._socket.chmod(0o600)
        except OSError as error:
            raise OperatorError(
                f"cannot listen on the engine's socket {self._socket}: {error.strerror}"
            ) from error

    async def close(self) -> None:
        """Stop listening and end all conversations, which ends their queries."""
        if self._server is not None:
            self._server.close()
            self._socket.unlink(missing_ok=True)
        answering = [one.answering for one in self._conversations if one.answering is not None]
        for conversation in self._conversations:
            conversation.end()
        for answer in answering:
            answer.cancel()
        await asyncio.gather(*answering, return_exceptions=True)
        await self._shared.close()

    def _converse(self) -> _Asked:
        conversation = _Asked(self._answer)
        self._conversations.add(conversation)
        return conversation

    async def _answer(self, request: Request, conversation: _Asked) -> None:
        try:
            if isinstance(request, TakeSnapshot):
                await self._lend_snapshot(conversation)
            else:
                conversation.send(await self._reply(request))
        except BaseException:
            conversation.end()
            raise

    async def _lend_snapshot(self, conversation: _Asked) -> None:
        """Take a snapshot and keep it until the other side goes away, however that happens."""
        try:
            snapshot = await self._snapshots.take()
        except OperatorError as error:
            conversation.send(Failure(FailureKind.UNAVAILABLE, str(error)))
            return
        self._log.info("snapshot_taken")
        try:
            conversation.send(SnapshotTaken(str(snapshot.path), snapshot.entries))
            await conversation.is_left.wait()
        finally:
            await self._snapshots.remove(snapshot.path)

    async def _reply(self, request: _Answered) -> Reply:
        match request:
            case Hit():
                return Verdict(await self._limiter.hit(request.caller))
            case AskReady():
                return Readiness(self._is_ready())
            case AwaitStored():
                return await self._await_stored()
            case Select():
                return await self._select(request)
        assert_never(request)

    async def _await_stored(self) -> Reply:
        try:
            await self._load_barrier()
        except StoreUnavailable as error:
            return Failure(FailureKind.UNAVAILABLE, str(error))
        return Stored()

    async def _select(self, request: Select) -> Reply:
        question = Question(
            request.website_id, request.sql, tuple(request.parameters.items()), request.guards
        )
        try:
            return Answer(await self._shared.answer(question, partial(self._run, request)))
        except QueryTimedOut as error:
            return Failure(FailureKind.TIMED_OUT, str(error))
        except QueryTooLarge as error:
            return Failure(FailureKind.TOO_LARGE, str(error))
        except StoreUnavailable as error:
            return Failure(FailureKind.UNAVAILABLE, str(error))
        except EngineFailure as failure:
            self._log.error("select_refused", code=failure.code, name=failure.name, sql=request.sql)
            return Failure(FailureKind.FAILED, str(failure))

    async def _run(self, request: Select, guards: QueryGuards) -> bytes:
        parameters = ParameterTexts(request.parameters)
        query_id = next(self._query_ids)
        return await self._runner.select(request.sql, parameters, guards, query_id)
