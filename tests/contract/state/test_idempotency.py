"""Idempotency keys: the first accepted request wins, across workers and restarts, for a day."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any, Protocol

import pytest

from headrace.adapters.data_dir.paths import IDEMPOTENCY
from headrace.adapters.sqlite.idempotency import SqliteIdempotencyStore
from headrace.adapters.valkey.client import AsyncValkeyClient
from headrace.adapters.valkey.idempotency import ValkeyIdempotencyStore
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock, SystemClock
from headrace.base.errors import LogUnavailable, OperatorError, SharedStateUnavailable
from headrace.ports.idempotency import Acquired, IdempotencyStore, Replay
from testing.servers.shared_state import ValkeyServer

DIGEST = b"d" * 16
OTHER = b"o" * 16


class Machine(Protocol):
    """The state that workers share: a file on one machine, or a server for several machines."""

    async def worker(self, name: str = "worker-0") -> IdempotencyStore:
        """Start a worker; a reused name means the same worker after a restart."""
        ...

    def claims(self) -> int:
        """Return the number of stored digests."""
        ...

    def age(self, milliseconds: int) -> None:
        """Advance the clock."""
        ...


class FileMachine:
    """Workers that share one file and one clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FixedClock(1_800_000_000_000)
        self._opened = ExitStack()

    async def worker(self, name: str = "worker-0") -> SqliteIdempotencyStore:
        idempotency_store = SqliteIdempotencyStore.open(self.path, owner=name, clock=self.clock)
        self._opened.callback(lambda: asyncio.run(idempotency_store.close()))
        return idempotency_store

    def age(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    def claims(self) -> int:
        with closing(sqlite3.connect(self.path)) as connection:
            count: int = connection.execute("SELECT count(*) FROM claims").fetchone()[0]
            return count

    @contextmanager
    def failing_writes(self, statement: str) -> Generator[None]:
        """Make the given statements fail, as on a full disk."""
        with closing(sqlite3.connect(self.path)) as connection:
            rejection = "BEGIN SELECT RAISE(ABORT, 'full'); END"
            connection.execute(f"CREATE TRIGGER full BEFORE {statement} ON claims {rejection}")
            yield
            connection.execute("DROP TRIGGER full")

    @contextmanager
    def blocked_writes(self) -> Generator[None]:
        """Block every write for the duration of the context."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")

    def close(self) -> None:
        self._opened.close()


class SharedMachines:
    """Workers of several machines that share one server."""

    def __init__(self, server: ValkeyServer) -> None:
        self._server = server
        self._opened: list[AsyncValkeyClient] = []

    async def worker(self, name: str = "worker-0") -> ValkeyIdempotencyStore:
        connections = self._server.connections()
        self._opened.append(connections)
        idempotency_store = ValkeyIdempotencyStore(connections, owner=name)
        await idempotency_store.open()
        return idempotency_store

    def claims(self) -> int:
        return sum(key.startswith(b"headrace:once:") for key in self._server.names())

    def age(self, milliseconds: int) -> None:
        self._server.age(milliseconds)

    async def close(self) -> None:
        for connections in self._opened:
            await connections.close()


@pytest.fixture
def file_machine(tmp_path: Path) -> Iterator[FileMachine]:
    made = FileMachine(tmp_path / IDEMPOTENCY)
    yield made
    made.close()


@pytest.fixture
async def shared_machines(valkey_server: ValkeyServer) -> AsyncIterator[SharedMachines]:
    valkey_server.empty()
    made = SharedMachines(valkey_server)
    yield made
    await made.close()


@pytest.fixture(params=["file_machine", "shared_machines"])
def machine(request: pytest.FixtureRequest) -> Machine:
    made: Machine = request.getfixturevalue(request.param)
    return made


async def acquire_and_save(
    idempotency_store: IdempotencyStore, digest: bytes, response: bytes
) -> None:
    assert await idempotency_store.acquire(digest) == Acquired()
    await idempotency_store.save_response(digest, response)


async def cancel_soon(work: Coroutine[Any, Any, object]) -> None:
    """Start a task and cancel it while its thread runs."""
    task = asyncio.create_task(work)
    await asyncio.wait({task}, timeout=0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_first_request_acquires_and_later_ones_replay_its_response(machine: Machine) -> None:
    idempotency_store = await machine.worker()
    await acquire_and_save(idempotency_store, DIGEST, b"first")
    assert await idempotency_store.acquire(DIGEST) == Replay(b"first")


async def test_digests_are_independent(machine: Machine) -> None:
    idempotency_store = await machine.worker()
    await acquire_and_save(idempotency_store, DIGEST, b"first")
    assert await idempotency_store.acquire(OTHER) == Acquired()


async def test_released_digest_is_not_replayed(machine: Machine) -> None:
    idempotency_store = await machine.worker()
    await idempotency_store.acquire(DIGEST)
    await idempotency_store.release(DIGEST)
    assert await idempotency_store.acquire(DIGEST) == Acquired()


async def test_release_after_save_keeps_the_response(machine: Machine) -> None:
    idempotency_store = await machine.worker()
    await acquire_and_save(idempotency_store, DIGEST, b"first")
    await idempotency_store.release(DIGEST)
    assert await idempotency_store.acquire(DIGEST) == Replay(b"first")


@pytest.mark.parametrize("name", ["worker-0", "worker-1"])
async def test_failed_release_is_retried_later(file_machine: FileMachine, name: str) -> None:
    idempotency_store, second = await file_machine.worker(), await file_machine.worker("worker-1")
    await idempotency_store.acquire(DIGEST)
    with file_machine.failing_writes("DELETE"), pytest.raises(LogUnavailable):
        await idempotency_store.release(DIGEST)
    async with asyncio.timeout(60):
        assert await idempotency_store.acquire(OTHER) == Acquired()
        again = idempotency_store if name == "worker-0" else second
        assert await again.acquire(DIGEST) == Acquired()


async def test_response_that_could_not_be_saved_blocks_no_waiter(file_machine: FileMachine) -> None:
    idempotency_store = await file_machine.worker()
    await idempotency_store.acquire(DIGEST)
    with file_machine.failing_writes("UPDATE"), pytest.raises(LogUnavailable):
        await idempotency_store.save_response(DIGEST, b"first")
    async with asyncio.timeout(60):
        assert await idempotency_store.acquire(DIGEST) == Acquired()


async def test_failed_acquire_does_not_block_the_next(file_machine: FileMachine) -> None:
    idempotency_store = await file_machine.worker()
    with file_machine.failing_writes("INSERT"), pytest.raises(LogUnavailable):
        await idempotency_store.acquire(DIGEST)
    assert await idempotency_store.acquire(DIGEST) == Acquired()


@pytest.mark.parametrize("name", ["worker-0", "worker-1"])
async def test_acquire_of_a_cancelled_request_is_released(
    file_machine: FileMachine, name: str
) -> None:
    idempotency_store, second = await file_machine.worker(), await file_machine.worker("worker-1")
    with file_machine.blocked_writes():
        await cancel_soon(idempotency_store.acquire(DIGEST))
    async with asyncio.timeout(60):
        assert await idempotency_store.acquire(OTHER) == Acquired()  # runs after the cancelled one
        again = idempotency_store if name == "worker-0" else second
        assert await again.acquire(DIGEST) == Acquired()


async def test_cancelled_waiter_releases_nothing(file_machine: FileMachine) -> None:
    idempotency_store = await file_machine.worker()
    assert await idempotency_store.acquire(DIGEST) == Acquired()
    await cancel_soon(idempotency_store.acquire(DIGEST))
    with file_machine.blocked_writes():
        await cancel_soon(idempotency_store.acquire(DIGEST))
    waiting = asyncio.create_task(idempotency_store.acquire(DIGEST))
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    await idempotency_store.save_response(DIGEST, b"first")
    assert await waiting == Replay(b"first")


async def test_response_of_a_cancelled_request_is_saved(file_machine: FileMachine) -> None:
    idempotency_store = await file_machine.worker()
    await idempotency_store.acquire(DIGEST)
    with file_machine.blocked_writes():
        blocking = asyncio.create_task(idempotency_store.acquire(OTHER))
        await cancel_soon(idempotency_store.save_response(DIGEST, b"first"))
    async with asyncio.timeout(60):
        assert await idempotency_store.acquire(DIGEST) == Replay(b"first")
    assert await blocking == Acquired()


async def test_second_waits_for_the_first_of_another_worker(machine: Machine) -> None:
    first, second = await machine.worker("worker-0"), await machine.worker("worker-1")
    await first.acquire(DIGEST)
    waiting = asyncio.create_task(second.acquire(DIGEST))
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    await first.save_response(DIGEST, b"first")
    assert await waiting == Replay(b"first")


async def test_second_takes_over_when_the_first_is_rejected(machine: Machine) -> None:
    first, second = await machine.worker("worker-0"), await machine.worker("worker-1")
    await first.acquire(DIGEST)
    waiting = asyncio.create_task(second.acquire(DIGEST))
    await first.release(DIGEST)
    assert await waiting == Acquired()


async def test_of_many_claims_at_once_one_is_first(machine: Machine) -> None:
    workers = [(await machine.worker(f"worker-{index}")) for index in range(3)]
    claims = [asyncio.create_task(worker.acquire(DIGEST)) for worker in workers]
    await asyncio.wait(claims, return_when=asyncio.FIRST_COMPLETED)
    done, waiting = await asyncio.wait(claims, timeout=0.2)
    assert [task.result() for task in done] == [Acquired()]
    winner = workers[claims.index(done.pop())]
    await winner.save_response(DIGEST, b"first")
    assert [await task for task in waiting] == [Replay(b"first")] * 2


async def test_responses_survive_a_restart(machine: Machine) -> None:
    await acquire_and_save((await machine.worker()), DIGEST, b"first")
    assert await (await machine.worker()).acquire(DIGEST) == Replay(b"first")


async def test_worker_releases_what_its_predecessor_acquired(machine: Machine) -> None:
    await (await machine.worker("worker-0")).acquire(DIGEST)
    assert await (await machine.worker("worker-0")).acquire(DIGEST) == Acquired()


async def test_claim_of_a_worker_that_never_came_back_is_taken_over(machine: Machine) -> None:
    await (await machine.worker("worker-7")).acquire(DIGEST)
    machine.age(60_000)
    assert await (await machine.worker("worker-0")).acquire(DIGEST) == Acquired()


@pytest.mark.parametrize(
    ("age_ms", "outcome"),
    [
        pytest.param(MILLISECONDS_PER_DAY - 60_000, Replay(b"first"), id="within-a-day"),
        pytest.param(MILLISECONDS_PER_DAY, Acquired(), id="after-a-day"),
    ],
)
async def test_responses_are_kept_for_a_day(
    machine: Machine, age_ms: int, outcome: Acquired | Replay
) -> None:
    idempotency_store = await machine.worker()
    await acquire_and_save(idempotency_store, DIGEST, b"first")
    machine.age(age_ms)
    assert await idempotency_store.acquire(DIGEST) == outcome


async def test_old_responses_are_deleted_from_disk(machine: Machine) -> None:
    idempotency_store = await machine.worker()
    for number in range(50):
        await acquire_and_save(idempotency_store, number.to_bytes(16), b"reply")
    machine.age(MILLISECONDS_PER_DAY)
    await idempotency_store.acquire(DIGEST)
    assert machine.claims() == 1


async def test_old_responses_are_deleted_after_the_clock_was_set_back(
    file_machine: FileMachine,
) -> None:
    idempotency_store = await file_machine.worker()
    file_machine.age(30 * MILLISECONDS_PER_DAY)
    await acquire_and_save(idempotency_store, DIGEST, b"sent while the clock was ahead")
    file_machine.age(-30 * MILLISECONDS_PER_DAY)
    await acquire_and_save(idempotency_store, OTHER, b"sent after that")
    file_machine.age(MILLISECONDS_PER_DAY)
    await acquire_and_save(idempotency_store, b"n" * 16, b"sent a day later")
    assert file_machine.claims() == 2


def test_file_that_is_not_a_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / IDEMPOTENCY
    path.write_bytes(b"not a database, but long enough to be looked at " * 100)
    with pytest.raises(
        OperatorError, match=r"cannot open the idempotency keys in .*repeats.sqlite"
    ):
        SqliteIdempotencyStore.open(path, owner="worker-0", clock=FixedClock(0))


async def test_machines_may_take_over_from_each_other(shared_machines: SharedMachines) -> None:
    first, second = await shared_machines.worker("a/0"), await shared_machines.worker("b/0")
    await first.acquire(DIGEST)
    waiting = asyncio.create_task(second.acquire(DIGEST))
    await shared_machines.worker("a/0")  # was killed and restarted
    assert await waiting == Acquired()


async def test_unavailable_valkey_rejects_acquires_and_recovers(
    shared_machines: SharedMachines, valkey_server: ValkeyServer
) -> None:
    idempotency_store = await shared_machines.worker()
    await acquire_and_save(idempotency_store, DIGEST, b"first")
    await idempotency_store.acquire(OTHER)
    valkey_server.server.kill()
    with pytest.raises(SharedStateUnavailable):
        await idempotency_store.acquire(b"new" * 5)
    with pytest.raises(SharedStateUnavailable):
        await idempotency_store.release(OTHER)
    await shared_machines.worker("worker-1")  # starts without the server
    valkey_server.server.start()
    assert await idempotency_store.acquire(DIGEST) == Replay(b"first")
    assert await idempotency_store.acquire(OTHER) == Acquired()


async def test_requests_of_an_outage_leave_nothing_to_release_after_it(
    shared_machines: SharedMachines, valkey_server: ValkeyServer
) -> None:
    idempotency_store = await shared_machines.worker()
    valkey_server.server.kill()
    for number in range(30):
        with pytest.raises(SharedStateUnavailable):
            await idempotency_store.acquire(number.to_bytes(16))
    valkey_server.server.start()
    assert await idempotency_store.acquire(DIGEST) == Acquired()
    assert valkey_server.calls("evalsha") < 10


async def test_cancelled_acquire_is_released(
    shared_machines: SharedMachines, valkey_server: ValkeyServer
) -> None:
    idempotency_store = await shared_machines.worker()
    valkey_server.server.signal(signal.SIGSTOP)
    try:
        await cancel_soon(idempotency_store.acquire(DIGEST))
    finally:
        valkey_server.server.signal(signal.SIGCONT)
    async with asyncio.timeout(60):
        assert await idempotency_store.acquire(DIGEST) == Acquired()


def test_all_workers_of_a_first_start_open_the_new_file(tmp_path: Path) -> None:
    workers = 8
    start = Barrier(workers)

    def open_in(path: Path, worker: int) -> SqliteIdempotencyStore:
        start.wait()
        return SqliteIdempotencyStore.open(path, owner=f"worker-{worker}", clock=SystemClock())

    with ThreadPoolExecutor(workers) as threads:
        for attempt in range(60):
            path = tmp_path / f"{attempt}.sqlite"
            opened = list(threads.map(partial(open_in, path), range(workers)))
            for store in opened:
                asyncio.run(store.close())
