"""Tasks of the engine process, and the thread that their blocking steps run on."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_ResultT = TypeVar("_ResultT")


class BackgroundSteps:
    """Used on one event loop. A step cannot be stopped: it ends even where its caller is cancelled.

    Steps use the connections of one thread at a time: a user of them on another thread holds the
    `lock` meanwhile.
    """

    def __init__(self, thread_name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=thread_name)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.lock = asyncio.Lock()

    def start(self, work: Coroutine[Any, Any, _ResultT]) -> asyncio.Task[_ResultT]:
        """Begin a task, which `close` cancels."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def to_end(self, work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
        """Return the result of work that goes on where the caller is cancelled."""
        return await asyncio.shield(self.start(work))

    async def run(self, step: Callable[[], _ResultT]) -> _ResultT:
        """Return the result of a step."""
        async with self.lock:
            return await asyncio.get_running_loop().run_in_executor(self._thread, step)

    async def close(self) -> None:
        """Cancel all tasks; return after the running step."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)
