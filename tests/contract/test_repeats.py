"""Idempotency keys: the first accepted request decides, over workers, restarts and a day."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from headrace.adapters.sqlite.idempotency import REPEATS_FILE, SqliteRepeats
from headrace.adapters.valkey.client import AsyncSharedServer
from headrace.adapters.valkey.idempotency import SharedRepeats
from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock
from headrace.base.errors import LogUnavailable, OperatorError, SharedUnavailable
from headrace.ports.idempotency import Claimed, Remembered, Repeats
from tests.servers import Shared

DIGEST = b"d" * 16
OTHER = b"o" * 16


class Machine(Protocol):
    """Whatever workers share: a file on one machine, a server over several."""

    async def worker(self, name: str = "worker-0") -> Repeats:
        """Start a worker; of the same name it is the same worker started again."""
        ...

    def claims(self) -> int:
        """Return how many digests are kept."""
        ...

    def age(self, milliseconds: int) -> None:
        """Let the time pass."""
        ...


class FileMachine:
    """Workers that share one file and one clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FixedClock(1_800_000_000_000)
        self._opened = ExitStack()

    async def worker(self, name: str = "worker-0") -> SqliteRepeats:
        repeats = SqliteRepeats.open(self.path, owner=name, clock=self.clock)
        self._opened.callback(lambda: asyncio.run(repeats.close()))
        return repeats

    def age(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    def claims(self) -> int:
        with closing(sqlite3.connect(self.path)) as connection:
            count: int = connection.execute("SELECT count(*) FROM claims").fetchone()[0]
            return count

    @contextmanager
    def refusing(self, statement: str) -> Generator[None]:
        """Let the file take no such statement, as a full disk may."""
        with closing(sqlite3.connect(self.path)) as connection:
            refusal = "BEGIN SELECT RAISE(ABORT, 'full'); END"
            connection.execute(f"CREATE TRIGGER full BEFORE {statement} ON claims {refusal}")
            yield
            connection.execute("DROP TRIGGER full")

    @contextmanager
    def held_up(self) -> Generator[None]:
        """Let every write wait until the end of the block."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")

    def close(self) -> None:
        self._opened.close()


class SharedMachines:
    """Workers of any machines that share one server."""

    def __init__(self, server: Shared) -> None:
        self._server = server
        self._opened: list[AsyncSharedServer] = []

    async def worker(self, name: str = "worker-0") -> SharedRepeats:
        connections = AsyncSharedServer(self._server.url)
        self._opened.append(connections)
        repeats = SharedRepeats(connections, owner=name)
        await repeats.open()
        return repeats

    def claims(self) -> int:
        return sum(key.startswith(b"headrace:once:") for key in self._server.names())

    def age(self, milliseconds: int) -> None:
        self._server.age(milliseconds)

    async def close(self) -> None:
        for connections in self._opened:
            await connections.close()


@pytest.fixture
def file_machine(tmp_path: Path) -> Iterator[FileMachine]:
    made = FileMachine(tmp_path / REPEATS_FILE)
    yield made
    made.close()


@pytest.fixture
async def shared_machines(shared_server: Shared) -> AsyncIterator[SharedMachines]:
    shared_server.empty()
    made = SharedMachines(shared_server)
    yield made
    await made.close()


@pytest.fixture(params=["file_machine", "shared_machines"])
def machine(request: pytest.FixtureRequest) -> Machine:
    made: Machine = request.getfixturevalue(request.param)
    return made


async def claim_and_keep(repeats: Repeats, digest: bytes, reply: bytes) -> None:
    assert await repeats.claim(digest) == Claimed()
    await repeats.keep(digest, reply)


async def cancel_soon(work: Coroutine[Any, Any, object]) -> None:
    """Begin some work and cancel it while its thread is in the middle of it."""
    task = asyncio.create_task(work)
    await asyncio.wait({task}, timeout=0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_first_claims_and_later_ones_get_its_reply(machine: Machine) -> None:
    repeats = await machine.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    assert await repeats.claim(DIGEST) == Remembered(b"first")


async def test_digests_do_not_meet(machine: Machine) -> None:
    repeats = await machine.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    assert await repeats.claim(OTHER) == Claimed()


async def test_released_claim_is_not_remembered(machine: Machine) -> None:
    repeats = await machine.worker()
    await repeats.claim(DIGEST)
    await repeats.release(DIGEST)
    assert await repeats.claim(DIGEST) == Claimed()


async def test_release_after_keep_forgets_nothing(machine: Machine) -> None:
    repeats = await machine.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    await repeats.release(DIGEST)
    assert await repeats.claim(DIGEST) == Remembered(b"first")


@pytest.mark.parametrize("name", ["worker-0", "worker-1"])
async def test_claim_that_could_not_be_released_is_given_back_later(
    file_machine: FileMachine, name: str
) -> None:
    repeats, second = await file_machine.worker(), await file_machine.worker("worker-1")
    await repeats.claim(DIGEST)
    with file_machine.refusing("DELETE"), pytest.raises(LogUnavailable):
        await repeats.release(DIGEST)
    async with asyncio.timeout(10):
        assert await repeats.claim(OTHER) == Claimed()
        again = repeats if name == "worker-0" else second
        assert await again.claim(DIGEST) == Claimed()


async def test_reply_that_could_not_be_kept_lets_nobody_wait(file_machine: FileMachine) -> None:
    repeats = await file_machine.worker()
    await repeats.claim(DIGEST)
    with file_machine.refusing("UPDATE"), pytest.raises(LogUnavailable):
        await repeats.keep(DIGEST, b"first")
    async with asyncio.timeout(10):
        assert await repeats.claim(DIGEST) == Claimed()


async def test_failed_claim_does_not_hinder_the_next(file_machine: FileMachine) -> None:
    repeats = await file_machine.worker()
    with file_machine.refusing("INSERT"), pytest.raises(LogUnavailable):
        await repeats.claim(DIGEST)
    assert await repeats.claim(DIGEST) == Claimed()


@pytest.mark.parametrize("name", ["worker-0", "worker-1"])
async def test_claim_of_a_cancelled_caller_is_given_back(
    file_machine: FileMachine, name: str
) -> None:
    repeats, second = await file_machine.worker(), await file_machine.worker("worker-1")
    with file_machine.held_up():
        await cancel_soon(repeats.claim(DIGEST))
    async with asyncio.timeout(10):
        assert await repeats.claim(OTHER) == Claimed()  # comes after the cancelled one
        again = repeats if name == "worker-0" else second
        assert await again.claim(DIGEST) == Claimed()


async def test_cancelled_caller_that_waited_gives_back_nothing(file_machine: FileMachine) -> None:
    repeats = await file_machine.worker()
    assert await repeats.claim(DIGEST) == Claimed()
    await cancel_soon(repeats.claim(DIGEST))
    with file_machine.held_up():
        await cancel_soon(repeats.claim(DIGEST))
    waiting = asyncio.create_task(repeats.claim(DIGEST))
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    await repeats.keep(DIGEST, b"first")
    assert await waiting == Remembered(b"first")


async def test_reply_of_a_cancelled_caller_is_kept(file_machine: FileMachine) -> None:
    repeats = await file_machine.worker()
    await repeats.claim(DIGEST)
    with file_machine.held_up():
        blocking = asyncio.create_task(repeats.claim(OTHER))
        await cancel_soon(repeats.keep(DIGEST, b"first"))
    async with asyncio.timeout(10):
        assert await repeats.claim(DIGEST) == Remembered(b"first")
    assert await blocking == Claimed()


async def test_second_waits_for_the_first_of_another_worker(machine: Machine) -> None:
    first, second = await machine.worker("worker-0"), await machine.worker("worker-1")
    await first.claim(DIGEST)
    waiting = asyncio.create_task(second.claim(DIGEST))
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    await first.keep(DIGEST, b"first")
    assert await waiting == Remembered(b"first")


async def test_second_takes_over_when_the_first_is_refused(machine: Machine) -> None:
    first, second = await machine.worker("worker-0"), await machine.worker("worker-1")
    await first.claim(DIGEST)
    waiting = asyncio.create_task(second.claim(DIGEST))
    await first.release(DIGEST)
    assert await waiting == Claimed()


async def test_of_many_claims_at_once_one_is_first(machine: Machine) -> None:
    workers = [(await machine.worker(f"worker-{index}")) for index in range(3)]
    claims = [asyncio.create_task(worker.claim(DIGEST)) for worker in workers]
    done, waiting = await asyncio.wait(claims, timeout=0.2)
    assert [task.result() for task in done] == [Claimed()]
    winner = workers[claims.index(done.pop())]
    await winner.keep(DIGEST, b"first")
    assert [await task for task in waiting] == [Remembered(b"first")] * 2


async def test_replies_survive_a_restart(machine: Machine) -> None:
    await claim_and_keep((await machine.worker()), DIGEST, b"first")
    assert await (await machine.worker()).claim(DIGEST) == Remembered(b"first")


async def test_worker_gives_back_what_its_predecessor_held(machine: Machine) -> None:
    await (await machine.worker("worker-0")).claim(DIGEST)
    assert await (await machine.worker("worker-0")).claim(DIGEST) == Claimed()


async def test_claim_of_a_worker_that_never_came_back_is_taken_over(machine: Machine) -> None:
    await (await machine.worker("worker-7")).claim(DIGEST)
    machine.age(60_000)
    assert await (await machine.worker("worker-0")).claim(DIGEST) == Claimed()


@pytest.mark.parametrize(
    ("age_ms", "outcome"),
    [
        pytest.param(MILLISECONDS_PER_DAY - 60_000, Remembered(b"first"), id="within-a-day"),
        pytest.param(MILLISECONDS_PER_DAY, Claimed(), id="after-a-day"),
    ],
)
async def test_replies_are_remembered_for_a_day(
    machine: Machine, age_ms: int, outcome: Claimed | Remembered
) -> None:
    repeats = await machine.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    machine.age(age_ms)
    assert await repeats.claim(DIGEST) == outcome


async def test_old_replies_leave_the_disk(machine: Machine) -> None:
    repeats = await machine.worker()
    for number in range(50):
        await claim_and_keep(repeats, number.to_bytes(16), b"reply")
    machine.age(MILLISECONDS_PER_DAY)
    await repeats.claim(DIGEST)
    assert machine.claims() == 1


def test_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / REPEATS_FILE
    path.write_bytes(b"not a database, but long enough to be looked at " * 100)
    with pytest.raises(
        OperatorError, match=r"cannot open the idempotency keys in .*repeats.sqlite"
    ):
        SqliteRepeats.open(path, owner="worker-0", clock=FixedClock(0))


async def test_machines_may_take_over_from_each_other(shared_machines: SharedMachines) -> None:
    first, second = await shared_machines.worker("a/0"), await shared_machines.worker("b/0")
    await first.claim(DIGEST)
    waiting = asyncio.create_task(second.claim(DIGEST))
    await shared_machines.worker("a/0")  # was killed, and started again
    assert await waiting == Claimed()


async def test_server_that_is_away_refuses_claims_and_takes_them_once_it_is_back(
    shared_machines: SharedMachines, shared_server: Shared
) -> None:
    repeats = await shared_machines.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    await repeats.claim(OTHER)
    shared_server.server.kill()
    with pytest.raises(SharedUnavailable):
        await repeats.claim(b"new" * 5)
    with pytest.raises(SharedUnavailable):
        await repeats.release(OTHER)
    await shared_machines.worker("worker-1")  # begins all the same
    shared_server.server.start()
    assert await repeats.claim(DIGEST) == Remembered(b"first")
    assert await repeats.claim(OTHER) == Claimed()


async def test_claim_that_was_cancelled_is_given_back(
    shared_machines: SharedMachines, shared_server: Shared
) -> None:
    repeats = await shared_machines.worker()
    shared_server.server.signal(signal.SIGSTOP)
    try:
        await cancel_soon(repeats.claim(DIGEST))
    finally:
        shared_server.server.signal(signal.SIGCONT)
    async with asyncio.timeout(10):
        assert await repeats.claim(DIGEST) == Claimed()
