"""Where all selects of a machine meet: equal ones share a run, each website gets its turn.

Knows no store: it is given what runs a select, what waits for loading, and what tells the version
of a website's rows.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from headrace.adapters.query_scheduler.fair_semaphore import FairPlaces
from headrace.adapters.query_scheduler.key import Question
from headrace.adapters.query_scheduler.versions import Version
from headrace.base.errors import QueryTimedOut, StoreUnavailable
from headrace.base.telemetry import Metrics
from headrace.ports.store import QueryGuards

AnswerT = TypeVar("AnswerT")

_LEAST_RUN_S = 0.001
_WORTH_A_RUN_S = 0.5
"""So much more time than a run had that timed out is worth another one."""


Run = Callable[[QueryGuards], Coroutine[Any, Any, AnswerT]]
"""Runs a select within guards. Cancelled, it returns when the select has ended in the store."""

LoadBarrier = Callable[[], Awaitable[None]]
"""Returns when everything acknowledged before the call is seen by selects that begin then."""


class KeepsAnswers(Protocol[AnswerT]):
    """Keeps answers by question and version: `AnswerCache`."""

    def get(self, question: Question, version: Version) -> AnswerT | None:
        """Return the answer over this version of the rows."""
        ...

    def put(self, question: Question, version: Version, answer: AnswerT) -> None:
        """Keep an answer over this version of the rows."""
        ...


class TellsVersions(Protocol):
    """Tells versions of rows: `DataVersions`."""

    def version_of(self, website: str) -> Version | None:
        """Return the version of a website's rows; None while they change, or if nobody knows."""
        ...


class NoVersions:
    """For a store that others write to as well: what was seen may be old at once."""

    def version_of(self, website: str) -> Version | None:  # noqa: ARG002 - nobody knows of any
        """Return None."""
        return None


class _Flight(Generic[AnswerT]):
    """One run, waiting or begun, and how many wait for its answer."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.callers = 0
        self.deadline_s = 0.0
        self.given_s = math.inf  # what the run may take, once it has begun
        self.turn = asyncio.Event()  # it has begun, or has ended before it could
        self.has_begun = False
        self.version: Version | None = None
        self.task: asyncio.Task[AnswerT]


class SharedSelects(Generic[AnswerT]):
    """Answers questions; for one event loop and many tasks.

    A question waits for loading and for its turn at most `wait_timeout_s`, and its deadline counts
    from its arrival.
    """

    def __init__(
        self,
        *,
        places: FairPlaces,
        load_barrier: LoadBarrier,
        versions: TellsVersions,
        cache: KeepsAnswers[AnswerT] | None,
        wait_timeout_s: float,
        metrics: Metrics,
    ) -> None:
        self._places = places
        self._load_barrier = load_barrier
        self._versions = versions
        self._cache = cache
        self._wait_timeout_s = wait_timeout_s
        self._metrics = metrics
        self._flights: dict[Question, _Flight[AnswerT]] = {}
        self._tasks: set[asyncio.Task[AnswerT]] = set()

    async def answer(self, question: Question, run: Run[AnswerT]) -> AnswerT:
        """Return the answer over everything acknowledged before the call.

        `run` gives it where nobody else has it. It is called with what is left of the guards.

        Raises `QueryTimedOut` past the deadline, `StoreUnavailable` where the turn does not come
        in time or too many wait, and what the run raises. Cancelling the caller ends the run when
        nobody else waits for it.
        """
        now_s = asyncio.get_running_loop().time()
        patience_s = now_s + self._wait_timeout_s
        deadline_s = now_s + question.guards.timeout_s
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._wait(self._load_barrier(), patience_s, "loading")
                kept = self._kept_answer(question)
                if kept is not None:
                    self._metrics.count("headrace_selects_total", 1, "cached")
                    return kept
                flight = self._flight_for(question, run)
                try:
                    return await self._fly_along(flight, patience_s, deadline_s)
                except QueryTimedOut:
                    if _left_s(deadline_s) < flight.given_s + _WORTH_A_RUN_S:
                        raise
                # It had waited for its turn longer than who came after it had begun.
                return await self._fly_along(
                    self._flight_for(question, run), deadline_s, deadline_s
                )
        except TimeoutError as error:
            raise QueryTimedOut("Query timed out") from error

    async def close(self) -> None:
        """End all runs and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait(self, step: Awaitable[object], patience_s: float, reason: str) -> None:
        patience = asyncio.timeout_at(patience_s)
        try:
            async with patience:
                await step
        except TimeoutError as error:
            if not patience.expired():
                raise
            self._metrics.count("headrace_selects_refused_total", 1, reason)
            raise StoreUnavailable(_REASONS[reason]) from error

    def _kept_answer(self, question: Question) -> AnswerT | None:
        version = self._versions.version_of(question.website_id)
        if version is None or self._cache is None:
            return None
        return self._cache.get(question, version)

    async def _fly_along(
        self, flight: _Flight[AnswerT], patience_s: float, deadline_s: float
    ) -> AnswerT:
        flight.callers += 1
        flight.deadline_s = max(flight.deadline_s, deadline_s)
        try:
            await self._wait(flight.turn.wait(), patience_s, "turn")
            return await asyncio.shield(flight.task)
        finally:
            flight.callers -= 1
            if not flight.callers:
                self._land(flight)
                flight.task.cancel()

    def _flight_for(self, question: Question, run: Run[AnswerT]) -> _Flight[AnswerT]:
        """Return a run that sees everything that is loaded now: under way, or a new one."""
        flight = self._flights.get(question)
        if flight is not None and self._sees_all(flight):
            self._metrics.count("headrace_selects_total", 1, "shared")
            return flight
        flight = self._flights[question] = _Flight(question)
        flight.task = asyncio.create_task(self._fly(flight, run))
        self._tasks.add(flight.task)
        flight.task.add_done_callback(self._settle)
        return flight

    def _sees_all(self, flight: _Flight[AnswerT]) -> bool:
        """Tell whether nothing has changed since a run began: one that has not will see all."""
        if not flight.has_begun:
            return True
        version = self._versions.version_of(flight.question.website_id)
        return version is not None and version == flight.version

    async def _fly(self, flight: _Flight[AnswerT], run: Run[AnswerT]) -> AnswerT:
        question = flight.question
        try:
            async with self._places.held(question.website_id):
                flight.version = self._versions.version_of(question.website_id)
                flight.has_begun = True
                flight.turn.set()
                self._metrics.count("headrace_selects_total", 1, "run")
                flight.given_s = max(_left_s(flight.deadline_s), _LEAST_RUN_S)
                answer = await run(_guards(flight))
        finally:
            flight.turn.set()
            self._land(flight)
        self._keep(flight, answer)
        return answer

    def _keep(self, flight: _Flight[AnswerT], answer: AnswerT) -> None:
        """Keep an answer of which it is sure which version of the rows it shows."""
        version = self._versions.version_of(flight.question.website_id)
        if self._cache is not None and version is not None and version == flight.version:
            self._cache.put(flight.question, version, answer)

    def _land(self, flight: _Flight[AnswerT]) -> None:
        """Let nobody board a run any more; a newer one may have taken its place."""
        if self._flights.get(flight.question) is flight:
            del self._flights[flight.question]

    def _settle(self, task: asyncio.Task[AnswerT]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # all who waited may be gone, and nobody else looks


_REASONS = {
    "loading": "the engine is still storing what came before",
    "turn": "too many queries are running",
}


def _left_s(deadline_s: float) -> float:
    return deadline_s - asyncio.get_running_loop().time()


def _guards(flight: _Flight[AnswerT]) -> QueryGuards:
    guards = flight.question.guards
    return QueryGuards(
        timeout_s=flight.given_s,
        max_memory_bytes=guards.max_memory_bytes,
        max_rows=guards.max_rows,
    )
