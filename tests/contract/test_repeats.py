"""Idempotency keys: the first accepted request decides, over workers, restarts and a day."""

import asyncio
import sqlite3
from collections.abc import Coroutine, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from millrace.adapters.sqlite_repeats import REPEATS_FILE, SqliteRepeats
from millrace.base.clock import MILLISECONDS_PER_DAY, FixedClock
from millrace.base.errors import LogUnavailable, OperatorError
from millrace.ports.repeats import Claimed, Remembered

DIGEST = b"d" * 16
OTHER = b"o" * 16


class Machine:
    """Workers that share one file and one clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FixedClock(1_800_000_000_000)
        self._opened = ExitStack()

    def worker(self, name: str = "worker-0") -> SqliteRepeats:
        repeats = SqliteRepeats.open(self.path, owner=name, clock=self.clock)
        self._opened.callback(lambda: asyncio.run(repeats.close()))
        return repeats

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


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / REPEATS_FILE)
    yield made
    made.close()


async def claim_and_keep(repeats: SqliteRepeats, digest: bytes, reply: bytes) -> None:
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
    repeats = machine.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    assert await repeats.claim(DIGEST) == Remembered(b"first")


async def test_digests_do_not_meet(machine: Machine) -> None:
    repeats = machine.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    assert await repeats.claim(OTHER) == Claimed()


async def test_released_claim_is_not_remembered(machine: Machine) -> None:
    repeats = machine.worker()
    await repeats.claim(DIGEST)
    await repeats.release(DIGEST)
    assert await repeats.claim(DIGEST) == Claimed()


async def test_release_after_keep_forgets_nothing(machine: Machine) -> None:
    repeats = machine.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    await repeats.release(DIGEST)
    assert await repeats.claim(DIGEST) == Remembered(b"first")


@pytest.mark.parametrize("name", ["worker-0", "worker-1"])
async def test_claim_that_could_not_be_released_is_given_back_later(
    machine: Machine, name: str
) -> None:
    repeats, second = machine.worker(), machine.worker("worker-1")
    await repeats.claim(DIGEST)
    with machine.refusing("DELETE"), pytest.raises(LogUnavailable):
        await repeats.release(DIGEST)
    async with asyncio.timeout(10):
        assert await repeats.claim(OTHER) == Claimed()
        again = repeats if name == "worker-0" else second
        assert await again.claim(DIGEST) == Claimed()


async def test_reply_that_could_not_be_kept_lets_nobody_wait(machine: Machine) -> None:
    repeats = machine.worker()
    await repeats.claim(DIGEST)
    with machine.refusing("UPDATE"), pytest.raises(LogUnavailable):
        await repeats.keep(DIGEST, b"first")
    async with asyncio.timeout(10):
        assert await repeats.claim(DIGEST) == Claimed()


async def test_failed_claim_does_not_hinder_the_next(machine: Machine) -> None:
    repeats = machine.worker()
    with machine.refusing("INSERT"), pytest.raises(LogUnavailable):
        await repeats.claim(DIGEST)
    assert await repeats.claim(DIGEST) == Claimed()


@pytest.mark.parametrize("name", ["worker-0", "worker-1"])
async def test_claim_of_a_cancelled_caller_is_given_back(machine: Machine, name: str) -> None:
    repeats, second = machine.worker(), machine.worker("worker-1")
    with machine.held_up():
        await cancel_soon(repeats.claim(DIGEST))
    async with asyncio.timeout(10):
        assert await repeats.claim(OTHER) == Claimed()  # comes after the cancelled one
        again = repeats if name == "worker-0" else second
        assert await again.claim(DIGEST) == Claimed()


async def test_cancelled_caller_that_waited_gives_back_nothing(machine: Machine) -> None:
    repeats = machine.worker()
    assert await repeats.claim(DIGEST) == Claimed()
    await cancel_soon(repeats.claim(DIGEST))
    with machine.held_up():
        await cancel_soon(repeats.claim(DIGEST))
    waiting = asyncio.create_task(repeats.claim(DIGEST))
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    await repeats.keep(DIGEST, b"first")
    assert await waiting == Remembered(b"first")


async def test_reply_of_a_cancelled_caller_is_kept(machine: Machine) -> None:
    repeats = machine.worker()
    await repeats.claim(DIGEST)
    with machine.held_up():
        blocking = asyncio.create_task(repeats.claim(OTHER))
        await cancel_soon(repeats.keep(DIGEST, b"first"))
    async with asyncio.timeout(10):
        assert await repeats.claim(DIGEST) == Remembered(b"first")
    assert await blocking == Claimed()


async def test_second_waits_for_the_first_of_another_worker(machine: Machine) -> None:
    first, second = machine.worker("worker-0"), machine.worker("worker-1")
    await first.claim(DIGEST)
    waiting = asyncio.create_task(second.claim(DIGEST))
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    await first.keep(DIGEST, b"first")
    assert await waiting == Remembered(b"first")


async def test_second_takes_over_when_the_first_is_refused(machine: Machine) -> None:
    first, second = machine.worker("worker-0"), machine.worker("worker-1")
    await first.claim(DIGEST)
    waiting = asyncio.create_task(second.claim(DIGEST))
    await first.release(DIGEST)
    assert await waiting == Claimed()


async def test_of_many_claims_at_once_one_is_first(machine: Machine) -> None:
    workers = [machine.worker(f"worker-{index}") for index in range(3)]
    claims = [asyncio.create_task(worker.claim(DIGEST)) for worker in workers]
    done, waiting = await asyncio.wait(claims, timeout=0.2)
    assert [task.result() for task in done] == [Claimed()]
    winner = workers[claims.index(done.pop())]
    await winner.keep(DIGEST, b"first")
    assert [await task for task in waiting] == [Remembered(b"first")] * 2


async def test_replies_survive_a_restart(machine: Machine) -> None:
    await claim_and_keep(machine.worker(), DIGEST, b"first")
    assert await machine.worker().claim(DIGEST) == Remembered(b"first")


async def test_worker_gives_back_what_its_predecessor_held(machine: Machine) -> None:
    await machine.worker("worker-0").claim(DIGEST)
    assert await machine.worker("worker-0").claim(DIGEST) == Claimed()


async def test_claim_of_a_worker_that_never_came_back_is_taken_over(machine: Machine) -> None:
    await machine.worker("worker-7").claim(DIGEST)
    machine.clock.advance(60_000)
    assert await machine.worker("worker-0").claim(DIGEST) == Claimed()


@pytest.mark.parametrize(
    ("age_ms", "outcome"),
    [
        pytest.param(MILLISECONDS_PER_DAY - 1, Remembered(b"first"), id="within-a-day"),
        pytest.param(MILLISECONDS_PER_DAY, Claimed(), id="after-a-day"),
    ],
)
async def test_replies_are_remembered_for_a_day(
    machine: Machine, age_ms: int, outcome: Claimed | Remembered
) -> None:
    repeats = machine.worker()
    await claim_and_keep(repeats, DIGEST, b"first")
    machine.clock.advance(age_ms)
    assert await repeats.claim(DIGEST) == outcome


async def test_old_replies_leave_the_disk(machine: Machine) -> None:
    repeats = machine.worker()
    for number in range(50):
        await claim_and_keep(repeats, number.to_bytes(16), b"reply")
    machine.clock.advance(MILLISECONDS_PER_DAY)
    await repeats.claim(DIGEST)
    assert machine.claims() == 1


def test_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / REPEATS_FILE
    path.write_bytes(b"not a database, but long enough to be looked at " * 100)
    with pytest.raises(
        OperatorError, match=r"cannot open the idempotency keys in .*repeats.sqlite"
    ):
        SqliteRepeats.open(path, owner="worker-0", clock=FixedClock(0))
