"""The client for asyncio reports through the same outbox, without blocking the loop."""

import asyncio
import sqlite3
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace_client import AsyncHeadrace, ClientClosed, InvalidItem, OutboxFull
from headrace_client.testing import FakeHeadrace

TIMEOUT_S = 10


def connected(server: FakeHeadrace, outbox: Path | None = None, **options: Any) -> AsyncHeadrace:
    options.setdefault("linger_s", 0.0)
    return AsyncHeadrace(server.url, "key", outbox=outbox, **options)


async def test_each_method_reports_its_item(server: FakeHeadrace, tmp_path: Path) -> None:
    async with connected(server, tmp_path / "outbox") as client:
        event_id = await client.track("a", {"n": 1}, anonymous_id="anon_1")
        ids = await client.track_many([{"name": "b"}, {"name": "c"}])
        await client.page_view("/pricing")
        await client.vitals("LCP", 1830)
        await client.errors("broken")
        await client.identify("acc-1")
        assert await client.flush()
        stats = await client.stats()

    assert stats[:5] == (0, 0, 7, 0, 0)
    assert server.event_names() == ["a", "b", "c", "screen_view"]
    assert [one["eventId"] for one in server.items()[:3]] == [event_id, *ids]
    others = [len(server.items(path)) for path in ("/vitals", "/errors", "/identify")]
    assert others == [1, 1, 1]


async def test_concurrent_calls_are_all_in_the_outbox(server: FakeHeadrace, tmp_path: Path) -> None:
    async with connected(server, tmp_path / "outbox") as client:
        await asyncio.gather(*(client.track("a", {"n": n}) for n in range(500)))
        assert await client.flush()

    assert sorted(one["properties"]["n"] for one in server.items()) == list(range(500))


async def test_call_whose_item_does_not_fit_fails_alone(tmp_path: Path) -> None:
    url, path = "http://127.0.0.1:9", tmp_path / "outbox"
    client = AsyncHeadrace(url, "key", outbox=path, max_outbox_bytes=100_000)
    sizes = [10, 1_000_000, 10]
    outcomes = await asyncio.gather(
        *(client.track("a", {"text": "x" * size}) for size in sizes), return_exceptions=True
    )
    stats = await client.stats()
    await client.close(0)

    assert [type(one) for one in outcomes] == [str, OutboxFull, str]
    assert stats.pending == 2


async def test_item_that_is_no_json_is_refused_at_once(server: FakeHeadrace) -> None:
    async with connected(server) as client:
        with pytest.raises(InvalidItem):
            await client.track("a", {"x": object()})


async def test_cancelled_call_does_not_stop_the_others(server: FakeHeadrace) -> None:
    async with connected(server) as client:
        cancelled = asyncio.create_task(client.track("a"))
        await asyncio.sleep(0)
        other = asyncio.create_task(client.track("b"))
        await asyncio.sleep(0)
        cancelled.cancel()
        await other
        assert await client.flush()

    assert "b" in server.event_names()


@contextmanager
def locked(outbox: Path) -> Generator[None]:
    """Let nobody write to an outbox meanwhile."""
    with closing(sqlite3.connect(outbox, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


async def test_program_that_cancels_all_tasks_can_report_after_that(
    server: FakeHeadrace, tmp_path: Path
) -> None:
    async with connected(server, tmp_path / "outbox") as client:
        await client.track("before")
        with locked(tmp_path / "outbox"):
            cancelled = asyncio.create_task(client.track("cancelled"))
            await asyncio.sleep(1)  # until its thread waits for the lock
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        async with asyncio.timeout(TIMEOUT_S):
            await client.track("after")
        assert await client.flush()

    assert cancelled.cancelled()
    assert server.event_names() == ["before", "cancelled", "after"]


def ignore_complaint(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    del loop, context


def test_client_is_usable_after_its_loop_was_closed_during_a_call(
    server: FakeHeadrace, tmp_path: Path
) -> None:
    client = connected(server, tmp_path / "outbox")
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(ignore_complaint)  # of the task that is left
    with locked(tmp_path / "outbox"):
        cut_off = loop.create_task(client.track("cut off"))
        loop.run_until_complete(asyncio.sleep(1))  # as above
    loop.close()

    async def report() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await client.track("after")
        assert await client.close()

    asyncio.run(report())
    assert not cut_off.done()
    assert server.event_names() == ["cut off", "after"]


def test_event_loops_of_several_threads_report_at_the_same_time(server: FakeHeadrace) -> None:
    client = connected(server)

    async def report(loop_number: int) -> None:
        for n in range(50):
            await client.track("a", {"n": 50 * loop_number + n})

    def run(loop_number: int) -> None:
        asyncio.run(asyncio.wait_for(report(loop_number), TIMEOUT_S))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(4)))
    assert client.client.close()

    assert sorted(one["properties"]["n"] for one in server.items()) == list(range(200))


def test_call_that_waits_while_another_event_loop_closes_the_client_ends(tmp_path: Path) -> None:
    path = tmp_path / "outbox"
    client = AsyncHeadrace("http://127.0.0.1:9", "key", outbox=path)

    async def report() -> list[str | BaseException]:
        with locked(path):
            calls = [asyncio.create_task(client.track(name)) for name in ("written", "waiting")]
            await asyncio.sleep(0)
        with ThreadPoolExecutor(1) as threads:
            threads.submit(lambda: asyncio.run(client.close(0))).result()
        async with asyncio.timeout(TIMEOUT_S):
            return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(report())

    assert [type(one) for one in outcomes] == [str, ClientClosed]


async def test_client_may_be_closed_twice_at_the_same_time(server: FakeHeadrace) -> None:
    client = connected(server)
    await client.track("a")

    assert await asyncio.gather(*(client.close() for _ in range(8))) == [True] * 8
    assert server.event_names() == ["a"]


async def test_query_returns_the_rows(server: FakeHeadrace) -> None:
    server.answer_queries([{"events": 3}])
    query = {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]}
    async with connected(server, website_id="web_1") as client:
        result = await client.query(query, last_days=7, order_by=[{"field": "count_all"}])

    order = [{"field": "count_all"}]
    assert (result, result.meta) == ([{"events": 3}], {"rowCount": 1})
    assert server.queries == [{"query": query, "lastDays": 7, "orderBy": order}]


async def test_funnel_and_retention_return_their_rows(server: FakeHeadrace) -> None:
    server.answer_queries([{"n": 3}])
    async with connected(server, website_id="web_1") as client:
        funnel = await client.funnel([{"filters": []}], last_days=7, group_by="country")
        retention = await client.retention({}, {}, granularity="weekly", periods=4, by="session_id")

    assert (funnel, retention) == ([{"n": 3}], [{"n": 3}])
    periods = {"granularity": "weekly", "periods": 4, "by": "session_id"}
    assert server.queries == [
        {"steps": [{"filters": []}], "lastDays": 7, "groupBy": "country"},
        {"first": {}, "return": {}, **periods},
    ]


async def test_closed_client_accepts_nothing(server: FakeHeadrace) -> None:
    client = connected(server)
    await client.close()
    with pytest.raises(ClientClosed):
        await client.track("a")
