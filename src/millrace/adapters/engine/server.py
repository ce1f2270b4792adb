"""The engine's end of its socket: answers the workers' selects and counts their callers."""

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, assert_never

from millrace.adapters.backup.tree import Snapshot
from millrace.adapters.embedded.engine import EngineFailure
from millrace.adapters.engine.protocol import (
    LONGEST_SOCKET_PATH,
    Answer,
    AskReady,
    AwaitStored,
    BrokenConversation,
    Failure,
    FailureKind,
    Hit,
    Readiness,
    Reply,
    Select,
    SnapshotTaken,
    Stored,
    TakeSnapshot,
    Verdict,
    read_request,
    write_message,
)
from millrace.adapters.selects.question import Question
from millrace.adapters.selects.shared_selects import SharedSelects
from millrace.adapters.sql.parameters import ParameterTexts
from millrace.base.errors import OperatorError, QueryTimedOut, QueryTooLarge, StoreUnavailable
from millrace.base.telemetry import Logger
from millrace.ports.limiter import Limiter
from millrace.ports.store import QueryGuards

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
        self._conversations: set[asyncio.Task[None]] = set()
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
            self._server = await asyncio.start_unix_server(self._converse, self._socket)
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
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)
        await self._shared.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.current_task()
        if conversation is not None:
            self._conversations.add(conversation)
            conversation.add_done_callback(self._conversations.discard)
        try:
            while (request := await read_request(reader)) is not None:
                if isinstance(request, TakeSnapshot):
                    await self._lend_snapshot(reader, writer)
                    break
                reply = await self._reply(request, reader)
                if reply is None:
                    break
                await write_message(writer, reply)
        except (BrokenConversation, OSError):
            self._log.debug("conversation_broken")
        except asyncio.CancelledError:
            self._log.debug("conversation_ended")  # by close(); nobody waits for this task
        finally:
            writer.close()

    async def _lend_snapshot(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Take a snapshot and keep it until the other side goes away, however that happens."""
        try:
            snapshot = await self._snapshots.take()
        except OperatorError as error:
            await write_message(writer, Failure(FailureKind.UNAVAILABLE, str(error)))
            return
        self._log.info("snapshot_taken")
        try:
            await write_message(writer, SnapshotTaken(str(snapshot.path), snapshot.entries))
            await reader.read(1)
        finally:
            await self._snapshots.remove(snapshot.path)

    async def _reply(self, request: _Answered, reader: asyncio.StreamReader) -> Reply | None:
        match request:
            case Hit():
                return Verdict(await self._limiter.hit(request.caller))
            case AskReady():
                return Readiness(self._is_ready())
            case AwaitStored():
                return await self._await_stored()
            case Select():
                return await self._select_while_asked(request, reader)
        assert_never(request)

    async def _await_stored(self) -> Reply:
        try:
            await self._load_barrier()
        except StoreUnavailable as error:
            return Failure(FailureKind.UNAVAILABLE, str(error))
        return Stored()

    async def _select_while_asked(
        self, request: Select, reader: asyncio.StreamReader
    ) -> Reply | None:
        """Run a select, or end it and return None when the other side goes away."""
        reply = asyncio.ensure_future(self._select(request))
        gone = asyncio.ensure_future(reader.read(1))  # nothing is sent before the reply
        try:
            await asyncio.wait({reply, gone}, return_when=asyncio.FIRST_COMPLETED)
            return reply.result() if reply.done() else None
        finally:
            reply.cancel()
            gone.cancel()
            await asyncio.gather(reply, gone, return_exceptions=True)

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
