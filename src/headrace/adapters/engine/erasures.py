"""Erasures within the engine process: the order of their steps, and their repetition."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Generic, TypeVar

from headrace.adapters.engine.background_steps import BackgroundSteps
from headrace.adapters.engine.erasure_steps import ErasureSteps, LeftoversT, Machines
from headrace.adapters.engine.load_loop import LoadAll, LoadLoop
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.logs import Logger
from headrace.model.erasure import ErasureRequest
from headrace.ports.event_log import LogOffset
from headrace.ports.rows.deletion import DeletionLost
from headrace.ports.rows.erasure import Erasure

ANSWER_TIMEOUT_S: Final = 300.0
"""A caller waits so long for answers without the rows; then the erasure goes on without it."""

FAILING_ANSWER_TIMEOUT_S: Final = 5.0
"""So long after the first failure: what is away may be away for days."""

_POLL_S: Final = 0.05
_FILES_POLL_S: Final = 1.0
FOLLOW_S: Final = 1.0
_OTHERS_POLL_S: Final = 0.2
_INITIAL_BACKOFF_S: Final = 0.5
_MAX_BACKOFF_S: Final = 30.0
_DELETIONS_AT_ONCE: Final = 100
"""Of those begun again at a start. The store refuses more where a thousand wait."""

ExcludeImports = Callable[[str], contextlib.AbstractAsyncContextManager[object]]
"""Lets no import store rows in a website within the context."""

_ResultT = TypeVar("_ResultT")


class _Answer:
    """What a caller waits for: an erasure that answers have no rows of, or that fails."""

    def __init__(self, erasure: Erasure) -> None:
        self.erasure = erasure
        self._clean = asyncio.Event()
        self._settled = asyncio.Event()

    def note_clean(self, erasure: Erasure) -> None:
        """Note that no answer has the rows."""
        self.erasure = erasure
        self._clean.set()
        self._settled.set()

    def note_failure(self, erasure: Erasure) -> None:
        """Note that a step failed; nobody knows how long that lasts."""
        if not self._clean.is_set():
            self.erasure = erasure
            self._settled.set()

    async def wait(self, failing_timeout_s: float) -> Erasure:
        """Return the erasure when answers are clean, or soon after a failure."""
        for event, timeout_s in (
            (self._settled, ANSWER_TIMEOUT_S),
            (self._clean, failing_timeout_s),
        ):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await event.wait()
        return self.erasure


class EngineErasures(Generic[LeftoversT]):
    """Runs erasures on one event loop; the steps run on a thread of their own or the loader's.

    `machines` has the other machines; this one looks for their erasures every `follow_s`, not
    where that is None.
    `blocking_requeue` is a context in which no entry of the quarantine moves to a log.
    `forget_results` drops the cached results of a website; it runs on the loader's thread.
    `forget_items` drops what live streams of a website can still read.
    """

    def __init__(
        self,
        steps: ErasureSteps[LeftoversT],
        *,
        machines: Machines,
        load_loop: LoadLoop,
        exclude_imports: ExcludeImports,
        blocking_requeue: Callable[[], contextlib.AbstractContextManager[None]],
        forget_results: Callable[[str], None],
        forget_items: Callable[[str], None],
        log: Logger,
        files_poll_s: float = _FILES_POLL_S,
        follow_s: float | None = FOLLOW_S,
        failing_answer_s: float = FAILING_ANSWER_TIMEOUT_S,
    ) -> None:
        self._steps = steps
        self._machines = machines
        self._follow_s = follow_s
        self._load_loop = load_loop
        self._exclude_imports = exclude_imports
        self._blocking_requeue = blocking_requeue
        self._forget_results = forget_results
        self._forget_items = forget_items
        self._log = log
        self._files_poll_s = files_poll_s
        self._failing_answer_s = failing_answer_s
        self._background = BackgroundSteps("erase")

    async def begin(self, request: ErasureRequest) -> Erasure:
        """Begin an erasure; return when no answer has its rows, or soon after a step has failed.

        A dry run begins nothing. Raises `StoreUnavailable`: nothing has begun then. Once it is
        noted it has begun: a deletion that fails is begun again, as at a start. An erasure goes on
        where its caller is cancelled: the step that notes it cannot be stopped.
        """
        return await self._background.to_end(self._begin_and_wait(request))

    async def _begin_and_wait(self, request: ErasureRequest) -> Erasure:
        if request.dry_run:
            return await self._begin(partial(self._steps.begin, request), request.website_id)
        await self._background.run(self._machines.join)
        erasure, is_deleting = await self._begin(
            partial(self._note_and_delete, request), request.website_id
        )
        answer = _Answer(erasure)
        if not is_deleting:
            answer.note_failure(erasure)
        self._background.start(self._complete(erasure, has_begun=is_deleting, answer=answer))
        self._log.info("erasure_begun", erasure=erasure.id, website=erasure.website_id)
        return await answer.wait(self._failing_answer_s)

    def _note_and_delete(
        self, request: ErasureRequest, log_ends: Mapping[str, LogOffset]
    ) -> tuple[Erasure, bool]:
        """Note an erasure and begin to delete its rows; return whether that was possible."""
        erasure = self._steps.begin(request, log_ends)
        try:
            self._steps.delete(erasure)
        except Exception as error:  # noqa: BLE001 - it is noted, so no error may end it
            return self._note_failure(erasure, error), False
        return erasure, True

    async def restore_answers(self) -> None:
        """Return when no answer has the rows of an erasure that answers did not have before.

        A power cut may have undone their deletion, which is durable only after a while. To be
        called before selects are possible; repeats what fails.
        """
        at_once = asyncio.Semaphore(_DELETIONS_AT_ONCE)
        async with asyncio.TaskGroup() as deletions:
            for erasure in await self._background.run(self._steps.pending):
                if erasure.answers_clean_ms and erasure.plan is not None:
                    deletions.create_task(self._delete_again(erasure, at_once))

    async def _delete_again(self, erasure: Erasure, at_once: asyncio.Semaphore) -> None:
        async with at_once:
            await self._repeat_deletion(erasure)

    async def _repeat_deletion(self, erasure: Erasure) -> None:
        backoff_s = _INITIAL_BACKOFF_S
        while True:
            try:
                await self._background.run(partial(self._steps.delete, erasure))
                await self._until_deleted(erasure)
            except (StoreUnavailable, OperatorError) as error:
                self._log.warning("erasure_failed", erasure=erasure.id, reason=str(error))
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)
            else:
                return

    async def resume_pending(self) -> None:
        """Go on with the erasures that an earlier process began."""
        for erasure in await self._background.run(self._steps.pending):
            self._background.start(self._complete(erasure, has_begun=False))

    def follow_others(self) -> None:
        """Begin to carry out the erasures of other machines."""
        if self._follow_s is not None:
            self._background.start(self._follow(self._follow_s))

    async def _follow(self, every_s: float) -> None:
        is_failing = False
        while True:
            try:
                for erasure in await self._background.run(self._machines.adopt):
                    self._log.info("erasure_adopted", erasure=erasure.id)
                    self._background.start(self._complete(erasure, has_begun=False))
                is_failing = False
            except Exception as error:  # noqa: BLE001 - no error may end the task
                if not is_failing:
                    self._log.warning("erasures_not_followed", reason=str(error))
                is_failing = True
            await asyncio.sleep(every_s)

    async def close(self) -> None:
        """End after the running step. The erasures go on when the engine starts again."""
        await self._background.close()
        await asyncio.to_thread(self._steps.close)
        await asyncio.to_thread(self._machines.close)

    async def _complete(
        self, erasure: Erasure, *, has_begun: bool, answer: _Answer | None = None
    ) -> None:
        """Take the steps until the erasure is done; one that fails is taken again.

        Only a deletion that was lost is begun again: each one rewrites parts, while this machine
        loads nothing.
        """
        answer = answer or _Answer(erasure)
        steps = (
            self._begin_again,
            partial(self._until_clean, answer=answer),
            self._until_files_clean,
            self._forget_identifier,
            self._until_others_done,
            self._finish,
        )
        position = 1 if has_begun else 0
        backoff_s = _INITIAL_BACKOFF_S
        while position < len(steps):
            try:
                erasure = await steps[position](erasure)
                position += 1
            except Exception as error:  # noqa: BLE001 - no error may end an erasure
                position = 0 if isinstance(error, DeletionLost) else position
                erasure = await self._background.run(partial(self._note_failure, erasure, error))
                answer.note_failure(erasure)
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)
        self._log.info("erasure_done", erasure=erasure.id)

    async def _begin_again(self, erasure: Erasure) -> Erasure:
        return await self._begin(partial(self._steps.resume, erasure), erasure.website_id)

    async def _until_clean(self, erasure: Erasure, *, answer: _Answer) -> Erasure:
        await self._until_deleted(erasure)
        self._forget_items(erasure.website_id)  # first: workers, which keep some too, follow it
        # A result that was computed meanwhile may have some of the rows.
        await self._load_loop.run_exclusive(lambda: self._forget_results(erasure.website_id))
        await self._background.run(partial(self._machines.note_clean, erasure))
        while not await self._background.run(  # noqa: ASYNC110
            partial(self._machines.are_answers_clean, erasure)
        ):
            await asyncio.sleep(_OTHERS_POLL_S)
        clean = await self._background.run(partial(self._steps.note_clean, erasure))
        answer.note_clean(clean)
        return clean

    async def _until_deleted(self, erasure: Erasure) -> None:
        while await self._background.run(partial(self._steps.is_deleting, erasure)):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)  # no store notifies anybody

    async def _until_files_clean(self, erasure: Erasure) -> Erasure:
        left = await self._background.run(partial(self._steps.clean_files, erasure))
        while await self._background.run(partial(self._steps.are_files_left, left)):  # noqa: ASYNC110
            await asyncio.sleep(self._files_poll_s)
        await self._background.run(partial(self._machines.note_files_clean, erasure))
        return erasure

    async def _forget_identifier(self, erasure: Erasure) -> Erasure:
        """Forget it where other machines have not finished: that may take days."""
        if await self._background.run(partial(self._machines.are_files_clean, erasure)):
            return erasure
        return await self._background.run(partial(self._steps.forget_identifier, erasure))

    async def _until_others_done(self, erasure: Erasure) -> Erasure:
        while not await self._background.run(partial(self._machines.are_files_clean, erasure)):
            reason = await self._background.run(partial(self._machines.describe_absent, erasure))
            erasure = await self._background.run(partial(self._steps.note_failure, erasure, reason))
            await asyncio.sleep(self._files_poll_s)
        return await self._background.run(partial(self._machines.with_all_parts, erasure))

    async def _finish(self, erasure: Erasure) -> Erasure:
        return await self._background.run(partial(self._steps.finish, erasure))

    def _note_failure(self, erasure: Erasure, error: Exception) -> Erasure:
        known = isinstance(error, StoreUnavailable | OperatorError)
        reason = str(error) if known else "a step failed: the log of the engine has the cause"
        self._log.warning("erasure_failed", erasure=erasure.id, reason=reason)
        if not known:
            self._log.error("erasure_step_failed", exc_info=error)
        with contextlib.suppress(StoreUnavailable):
            return self._steps.note_failure(erasure, reason)
        return erasure

    async def _begin(
        self, step: Callable[[Mapping[str, LogOffset]], _ResultT], website_id: str
    ) -> _ResultT:
        """Take a step between two loads, when all that is durable is loaded.

        An import has either checked its rows against the erasure, or the erasure finds them.
        """

        def take(load_all: LoadAll) -> _ResultT:
            with self._blocking_requeue():
                return step(load_all())

        async with self._exclude_imports(website_id), self._background.lock:
            return await self._load_loop.run_loaded(take)
