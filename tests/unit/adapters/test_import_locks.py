"""Who waits for whom: imports of a website, and what excludes them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from headrace.adapters.data_dir.import_locks import ImportLocks
from headrace.base.errors import StoreUnavailable

pytestmark = pytest.mark.asyncio

LONG_S = 30


@asynccontextmanager
async def begun(lock: AbstractAsyncContextManager[None]) -> AsyncGenerator[asyncio.Event]:
    """Begin to take a lock in a task, which keeps it; yields what is set when it has it."""
    has_it = asyncio.Event()

    async def keep() -> None:
        async with lock:
            has_it.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(keep())
    yield has_it
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(event: asyncio.Event) -> None:
    async with asyncio.timeout(LONG_S):
        await event.wait()


async def test_an_import_waits_for_all_that_exclude_it(tmp_path: Path) -> None:
    locks = ImportLocks(tmp_path)
    async with locks.excluding_imports("w"), begun(locks.excluding_imports("w")) as second:
        await until(second)
        async with locks.importing("other"):
            pass
        async with begun(locks.importing("w")) as importing:
            await asyncio.sleep(0.1)
            assert not importing.is_set()
    async with locks.importing("w"):
        pass


async def test_who_waits_for_an_import_comes_before_its_next_chunk(tmp_path: Path) -> None:
    locks = ImportLocks(tmp_path)
    async with locks.importing("w"):
        waiting = begun(locks.excluding_imports("w"))
        excluding = await waiting.__aenter__()
        await asyncio.sleep(0.1)
        assert not excluding.is_set()
    async with begun(locks.importing("w")) as importing:
        await until(excluding)
        assert not importing.is_set()
        await waiting.__aexit__(None, None, None)
        await until(importing)


async def test_a_directory_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot open"):
        async with ImportLocks(tmp_path / "gone").importing("w"):
            pass
