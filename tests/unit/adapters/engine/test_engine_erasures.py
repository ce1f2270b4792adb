"""The order of an erasure's steps, and what happens at a start while one is not done."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import pytest
from msgspec.structs import replace

from headrace.adapters.engine.erasures import EngineErasures
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger
from headrace.erasure.machines import OneMachine
from headrace.model.erasure import ErasureRequest, Selector, SelectorKind
from headrace.model.tenancy import WebsiteId
from headrace.ports.event_log import LogOffset
from headrace.ports.rows.deletion import DeletionLost
from headrace.ports.rows.erasure import Erasure, ErasurePlan

pytestmark = pytest.mark.asyncio

WEBSITE = WebsiteId("web_1")
PLAN = ErasurePlan(tables=(), log_ends={}, quarantined=(), selectors=())
PENDING = Erasure(
    id="era_1",
    website_id=WEBSITE,
    kind=SelectorKind.ANONYMOUS_ID,
    subjects=(),
    by="key_1",
    requested_ms=1,
    plan=PLAN,
)
REQUEST = ErasureRequest(
    website_id=WEBSITE,
    selectors=(Selector(SelectorKind.ANONYMOUS_ID, "a"),),
    by="key_1",
    with_visitors=False,
    dry_run=False,
)


class Steps:
    """Records the steps; the deletion takes two polls, `failures` are raised by steps by name."""

    def __init__(self, *kept: Erasure) -> None:
        self.kept = kept
        self.taken: list[str] = []
        self.failures: dict[str, list[Exception]] = {}
        self._polls = 0
        self._loop = asyncio.get_running_loop()
        self.finished = asyncio.Event()

    def _take(self, step: str) -> None:
        self.taken.append(step)
        if self.failures.get(step):
            raise self.failures[step].pop()

    def begin(self, request: ErasureRequest, log_ends: Mapping[str, LogOffset]) -> Erasure:
        assert log_ends == {}
        self._take("begin")
        return replace(PENDING, website_id=request.website_id)

    def resume(self, erasure: Erasure, log_ends: Mapping[str, LogOffset]) -> Erasure:
        assert log_ends == {}
        self._take("resume")
        return erasure

    def delete(self, erasure: Erasure) -> None:
        assert erasure.plan == PLAN
        self._take("delete")

    def pending(self) -> Sequence[Erasure]:
        return self.kept

    def is_deleting(self, erasure: Erasure) -> bool:
        assert erasure.plan == PLAN
        if self.failures.get("is deleting"):
            raise self.failures["is deleting"].pop()
        self._polls = (self._polls + 1) % 3
        if not self._polls:
            self.taken.append("deleted")
        return bool(self._polls)

    def note_clean(self, erasure: Erasure) -> Erasure:
        self._take("note clean")
        return replace(erasure, answers_clean_ms=2)

    def clean_files(self, erasure: Erasure) -> None:
        assert erasure.plan == PLAN
        self._take("clean files")

    def are_files_left(self, leftovers: None) -> bool:
        return leftovers is not None

    def forget_identifier(self, erasure: Erasure) -> Erasure:
        self._take("forget identifier")
        return replace(erasure, plan=None)

    def finish(self, erasure: Erasure) -> Erasure:
        self._take("finish")
        self._loop.call_soon_threadsafe(self.finished.set)
        return replace(erasure, plan=None, done_ms=3)

    def note_failure(self, erasure: Erasure, reason: str) -> Erasure:
        self.taken.append(reason)
        return replace(erasure, last_error=reason)

    def close(self) -> None:
        self.taken.append("close")


class Loads:
    """A load loop that has nothing to load."""

    async def run_exclusive(self, work: Callable[[], object]) -> object:
        return work()

    async def run_loaded(
        self, work: Callable[[Callable[[], Mapping[str, LogOffset]]], object]
    ) -> object:
        return work(dict[str, LogOffset])


class SlowLoads(Loads):
    """A loader's thread: work goes on there when its caller leaves, and returns when it may."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.may_return = asyncio.Event()

    async def run_loaded(
        self, work: Callable[[Callable[[], Mapping[str, LogOffset]]], object]
    ) -> object:
        result = work(dict[str, LogOffset])
        self.entered.set()
        await self.may_return.wait()
        return result


class OtherMachine(OneMachine):
    """One other machine: it takes two polls for its answers, and then two for its files."""

    def __init__(self, steps: Steps, *announced: Erasure) -> None:
        self._steps = steps
        self._announced = announced
        self._polls = 0

    def join(self) -> None:
        self._steps.taken.append("join")

    def adopt(self) -> list[Erasure]:
        adopted, self._announced = list(self._announced), ()
        return adopted

    def note_clean(self, erasure: Erasure) -> None:
        assert erasure.plan == PLAN
        self._steps.taken.append("announce")

    def are_answers_clean(self, erasure: Erasure) -> bool:
        del erasure
        self._polls += 1
        return self._polls > 2

    def note_files_clean(self, erasure: Erasure) -> None:
        del erasure
        self._steps.taken.append("tell")

    def are_files_clean(self, erasure: Erasure) -> bool:
        del erasure
        self._polls += 1
        return self._polls > 6

    def describe_absent(self, erasure: Erasure) -> str:
        assert erasure.plan is None
        return "the other is away"

    def with_all_parts(self, erasure: Erasure) -> Erasure:
        return replace(erasure, rows={"events": 7})


def erasures_of(
    steps: Steps,
    machines: OneMachine | None = None,
    *,
    follow_s: float | None = None,
    failing_answer_s: float = 30,
    loads: Loads | None = None,
) -> EngineErasures[None]:
    return EngineErasures(
        steps,
        machines=machines or OneMachine(),
        follow_s=follow_s,
        failing_answer_s=failing_answer_s,
        exclude_imports=nullcontext,
        load_loop=loads or Loads(),  # type: ignore[arg-type]  # the part of it that erasures use
        blocking_requeue=nullcontext,
        forget_results=lambda website: steps.taken.append(f"forget {website}"),
        forget_items=lambda website: steps.taken.append(f"forget items of {website}"),
        log=get_logger(),
        files_poll_s=0,
    )


async def until_finished(steps: Steps) -> None:
    async with asyncio.timeout(30):
        await steps.finished.wait()


REST = [
    "deleted",
    "forget items of web_1",
    "forget web_1",
    "note clean",
    "clean files",
    "finish",
]


async def test_an_erasure_is_returned_when_answers_are_clean_and_goes_on_to_the_end() -> None:
    steps = Steps()
    erasures = erasures_of(steps)
    erasure = await erasures.begin(REQUEST)
    assert erasure.answers_clean_ms == 2
    await until_finished(steps)
    await erasures.close()
    assert steps.taken == ["begin", "delete", *REST, "close"]


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        ("is deleting", [], REST),
        ("note clean", REST[:4], REST),
        ("clean files", REST[:5], REST[4:]),
        ("finish", REST, REST[5:]),
    ],
)
async def test_a_failed_step_is_noted_and_taken_again_without_another_deletion(
    step: str, before: list[str], after: list[str]
) -> None:
    steps = Steps()
    steps.failures[step] = [StoreUnavailable("away")]
    erasures = erasures_of(steps)
    await erasures.begin(REQUEST)
    await until_finished(steps)
    await erasures.close()
    assert steps.taken == ["begin", "delete", *before, "away", *after, "close"]


async def test_a_lost_deletion_is_begun_again() -> None:
    steps = Steps()
    steps.failures["is deleting"] = [DeletionLost("lost")]
    erasures = erasures_of(steps)
    await erasures.begin(REQUEST)
    await until_finished(steps)
    await erasures.close()
    assert steps.taken == ["begin", "delete", "lost", "resume", *REST, "close"]


async def test_an_erasure_that_fails_is_returned_soon_and_goes_on() -> None:
    steps = Steps()
    steps.failures["is deleting"] = [StoreUnavailable("a replica is away")]
    erasures = erasures_of(steps, failing_answer_s=0)
    erasure = await erasures.begin(REQUEST)
    assert (erasure.answers_clean_ms, erasure.last_error) == (0, "a replica is away")
    await until_finished(steps)
    await erasures.close()
    assert steps.taken == ["begin", "delete", "a replica is away", *REST, "close"]


async def test_nothing_begins_where_the_first_step_fails() -> None:
    steps = Steps()
    steps.failures["begin"] = [StoreUnavailable("away")]
    erasures = erasures_of(steps)
    with pytest.raises(StoreUnavailable, match="away"):
        await erasures.begin(REQUEST)
    await erasures.close()
    assert steps.taken == ["begin", "close"]


async def test_an_erasure_goes_on_where_its_caller_leaves_while_it_begins() -> None:
    steps, loads = Steps(), SlowLoads()
    erasures = erasures_of(steps, loads=loads)
    caller = asyncio.create_task(erasures.begin(REQUEST))
    await loads.entered.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    loads.may_return.set()
    await until_finished(steps)
    await erasures.close()
    assert steps.taken == ["begin", "delete", *REST, "close"]


@pytest.mark.parametrize("failure", [StoreUnavailable("away"), ValueError("unexpected")])
async def test_an_erasure_whose_deletion_fails_has_begun_and_goes_on(failure: Exception) -> None:
    steps = Steps()
    steps.failures["delete"] = [failure]
    erasures = erasures_of(steps)
    erasure = await erasures.begin(REQUEST)
    assert erasure.answers_clean_ms == 2
    await until_finished(steps)
    await erasures.close()
    assert steps.taken[:2] == ["begin", "delete"]
    assert steps.taken[3:] == ["resume", *REST, "close"]


async def test_rows_that_answers_had_lost_are_deleted_again_before_a_start_goes_on() -> None:
    clean = replace(PENDING, answers_clean_ms=2)
    without_plan = replace(clean, plan=None)
    steps = Steps(PENDING, clean, without_plan)
    steps.failures["delete"] = [StoreUnavailable("the disk is full")]
    erasures = erasures_of(steps)
    await erasures.restore_answers()
    assert steps.taken == ["delete", "delete", "deleted"]
    await erasures.close()


async def test_a_start_begins_all_deletions_before_it_waits_for_one() -> None:
    """The store takes out the rows of all by reading its parts once."""
    clean = replace(PENDING, answers_clean_ms=2)
    steps = Steps(clean, replace(clean, id="era_2"))
    erasures = erasures_of(steps)
    await erasures.restore_answers()
    assert steps.taken == ["delete", "delete", "deleted", "deleted"]
    await erasures.close()


async def test_pending_erasures_go_on_after_a_start() -> None:
    steps = Steps(PENDING)
    erasures = erasures_of(steps)
    await erasures.resume_pending()
    await until_finished(steps)
    await erasures.close()
    assert steps.taken == ["resume", *REST, "close"]


async def test_an_erasure_is_done_when_the_other_machines_have_finished() -> None:
    steps = Steps()
    erasures = erasures_of(steps, OtherMachine(steps))
    erasure = await erasures.begin(REQUEST)
    assert erasure.answers_clean_ms == 2
    await until_finished(steps)
    await erasures.close()
    begun = ["join", "begin", "delete", *REST[:3]]
    clean = ["announce", "note clean", "clean files"]
    away = ["tell", "forget identifier", "the other is away", "the other is away"]
    assert steps.taken == [*begun, *clean, *away, "finish", "close"]


async def test_erasures_of_other_machines_are_carried_out_here() -> None:
    steps = Steps()
    erasures = erasures_of(steps, OtherMachine(steps, PENDING), follow_s=0.01)
    erasures.follow_others()
    await until_finished(steps)
    await erasures.close()
    assert steps.taken[:2] == ["resume", "deleted"]


async def test_a_dry_run_takes_no_part_in_erasures_of_others() -> None:
    steps = Steps()
    erasures = erasures_of(steps, OtherMachine(steps))
    await erasures.begin(replace(REQUEST, dry_run=True))
    await erasures.close()
    assert steps.taken == ["begin", "close"]
