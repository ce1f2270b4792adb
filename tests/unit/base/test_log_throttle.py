"""Log throttling: the first lines of a flood, and the number of suppressed ones."""

import logging

import pytest
import structlog

from headrace.base.clock import FixedClock
from headrace.base.errors import InvalidApiKey, LogUnavailable, Unavailable
from headrace.base.log_throttle import LogThrottle, LogThrottleFilter
from headrace.base.logs import Logger
from headrace.base.metrics import Metrics
from headrace.http import endpoints
from headrace.http.access_log import AccessLog

TRACK = endpoints.INGESTION_ENDPOINTS[0]
FULL = LogUnavailable("the disk is full")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(1_800_000_000_000)


def budget_of(clock: FixedClock, *, lines: int) -> LogThrottle:
    return LogThrottle(lines=lines, window_s=10, monotonic_s=clock.monotonic_s)


def test_lines_over_the_limit_are_suppressed_and_counted(clock: FixedClock) -> None:
    budget = budget_of(clock, lines=2)
    first = [budget.admit("kind") for _ in range(5)]
    clock.advance(10_000)
    later = [budget.admit("kind") for _ in range(3)]
    clock.advance(10_000)
    assert (first, later, budget.admit("kind")) == ([0, 0, None, None, None], [3, 0, None], 1)


def test_event_names_have_separate_limits(clock: FixedClock) -> None:
    budget = budget_of(clock, lines=1)
    assert [budget.admit(kind) for kind in ("one", "two", "one", "two")] == [0, 0, None, None]


def test_memory_is_bounded_for_unlimited_event_names(clock: FixedClock) -> None:
    budget = budget_of(clock, lines=1)
    assert {budget.admit(kind) for kind in range(10_000)} == {0}
    assert budget.admit(0) == 0  # its event name was evicted


def record(words: str, name: str = "uvicorn.error") -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, "server.py", 1, words, ("a",), None)


def test_library_log_lines_are_throttled_with_a_suppressed_count(clock: FixedClock) -> None:
    sparing = LogThrottleFilter(budget_of(clock, lines=1))
    flood = [sparing.filter(record("call of %s is no HTTP")) for _ in range(4)]
    other = sparing.filter(record("call of %s is no HTTP", "asyncio"))
    clock.advance(10_000)
    last = record("call of %s is no HTTP")
    assert (flood, other, sparing.filter(last)) == ([True, False, False, False], True, True)
    assert last.getMessage() == "call of a is no HTTP (3 more like this were left out)"


class Recorded:
    """An access log, and the lines that it wrote."""

    def __init__(self, clock: FixedClock) -> None:
        self.lines: list[dict[str, object]] = []
        self.metrics = Metrics()
        self.access_log = AccessLog(clock=clock, metrics=self.metrics, log=self._logger())

    def take_lines(self) -> list[dict[str, object]]:
        taken, self.lines = self.lines, []
        return taken

    def _logger(self) -> Logger:
        def keep(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
            self.lines.append(dict(event))
            raise structlog.DropEvent

        logger: Logger = structlog.wrap_logger(
            None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(20)
        )
        return logger


def test_unavailability_is_logged_once_when_it_begins(
    clock: FixedClock,
) -> None:
    recorded = Recorded(clock)
    line = {
        "event": "request_failed",
        "endpoint": "track",
        "error": "LogUnavailable",
        "reason": "the disk is full",
    }

    for number in range(500):
        recorded.access_log.record_failure(TRACK, FULL, f"id-{number}")
    recorded.access_log.record_failure(TRACK, Unavailable("too many bytes"), "other")
    begun = recorded.take_lines()
    clock.advance(10_000)
    recorded.access_log.record_failure(TRACK, FULL, "id-500")

    assert begun == [
        {**line, "request_id": "id-0"},
        {**line, "error": "Unavailable", "reason": "too many bytes", "request_id": "other"},
    ]
    assert recorded.take_lines() == [{**line, "request_id": "id-500", "left_out": 499}]


def test_internal_errors_are_logged_ten_times_in_ten_seconds(clock: FixedClock) -> None:
    recorded = Recorded(clock)
    for number in range(30):
        recorded.access_log.record_failure(TRACK, ValueError("quoted"), f"id-{number}")
    assert [line["request_id"] for line in recorded.lines] == [f"id-{n}" for n in range(10)]


def test_client_errors_are_not_failures(clock: FixedClock) -> None:
    recorded = Recorded(clock)
    recorded.access_log.record_failure(TRACK, InvalidApiKey(), "id")
    assert recorded.lines == []


def test_flood_of_rejections_is_a_hundred_lines_and_fully_counted(clock: FixedClock) -> None:
    recorded = Recorded(clock)
    for _ in range(1_000):
        recorded.access_log.record(TRACK, "POST", 401, 0.0, "id")
    recorded.access_log.record(TRACK, "POST", 400, 0.0, "id")
    flood = recorded.take_lines()
    clock.advance(10_000)
    recorded.access_log.record(TRACK, "POST", 401, 0.0, "id")

    assert [line["status"] for line in flood] == [401] * 100 + [400]
    assert [line["left_out"] for line in recorded.lines] == [900]
    counted = 'headrace_http_requests_total{endpoint="track",status="401"} 1001.0'
    assert counted in recorded.metrics.render().decode()


def probe_lines(clock: FixedClock, *statuses: int) -> list[object]:
    """Return the statuses of probes, five seconds apart, that have a line."""
    recorded = Recorded(clock)
    for status in statuses:
        clock.advance(5_000)
        recorded.access_log.record(endpoints.READY, "GET", status, 0.0, "id")
    assert f'endpoint="ready",status="503"}} {statuses.count(503)}.0' in (
        recorded.metrics.render().decode()
    )
    return [line["status"] for line in recorded.lines]


def test_probes_of_a_service_that_starts_have_no_line(clock: FixedClock) -> None:
    assert probe_lines(clock, 503, 503, 503, 200) == []


def test_probes_of_a_service_that_was_ready_have_a_line_when_it_is_not(clock: FixedClock) -> None:
    assert probe_lines(clock, 503, 200, 503, 200) == [503]


def test_probes_of_a_service_that_starts_for_long_have_a_line(clock: FixedClock) -> None:
    assert probe_lines(clock, *[503] * 7) == [503, 503]
