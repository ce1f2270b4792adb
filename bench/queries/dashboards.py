"""Standard queries and whole overviews over HTTP, as the page sends them, one and four at once.

An overview is two calls that the page sends at the same time: the totals and the chart beside those
of the period before, and the most frequent values of all cards. It is complete with the later one.
Overviews that are open at the same time have ranges that end on different days, so that no
statement of one serves another.
"""

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any, Final

from msgspec.structs import replace

from bench.dataset.generate import Dataset
from bench.load.processes import measure_usage, pids_of
from bench.queries.latency import MONTH, WARM_UPS, HttpClient
from bench.queries.query_list import ZONE, DateRange
from bench.report.measurements import Measurement, Threshold
from headrace.query.standard.definitions import STANDARD_TYPES
from testing.service import Service

OVERVIEWS_AT_ONCE: Final = 4
TYPE_MS: Final = Threshold(fixed=100, of_p95=True)
OVERVIEW_MS: Final = Threshold(fixed=500, of_p95=True)
STANDARD_GROUP: Final = "types of standard queries, a month of the biggest website, warm"
OVERVIEW_GROUP: Final = "overviews, a month of the biggest website, warm"
OVERVIEW: Final = "an overview, compared with the period before"

_CARDS: Final = (
    *("pages", "entry_pages", "exit_pages", "referrers", "campaigns"),
    *("countries", "browsers", "systems", "devices", "events"),
)
_CALLS: Final[Sequence[Mapping[str, Any]]] = (
    {
        "types": ["summary", "timeseries", "online"],
        "granularity": "daily",
        "compare": "previous_period",
    },
    {"types": list(_CARDS), "limit": 10},
)


class Overviews:
    """Opens several overviews at once, over two connections each."""

    def __init__(self, service: Service, dataset: Dataset, count: int) -> None:
        self._clients = [[HttpClient(service, dataset) for _ in _CALLS] for _ in range(count)]
        self._threads = ThreadPoolExecutor(count * len(_CALLS))

    def open(self, timezone: str = "UTC") -> list[float]:
        """Open all of them and return the milliseconds until each is complete."""
        calls = [
            [
                self._threads.submit(client.send, "standard", _body(call, days_ago, timezone))
                for client, call in zip(clients, _CALLS, strict=True)
            ]
            for days_ago, clients in enumerate(self._clients)
        ]
        return [max(call.result().ms for call in overview) for overview in calls]

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


@contextmanager
def overviews(service: Service, dataset: Dataset, count: int) -> Generator[Overviews]:
    """Prepare to open overviews."""
    opened = Overviews(service, dataset, count)
    try:
        yield opened
    finally:
        opened.close()


def _body(call: Mapping[str, Any], days_ago: int, timezone: str) -> Mapping[str, Any]:
    days = _shifted(MONTH, days_ago)
    return {**call, "startDate": days.first, "endDate": days.last, "timezone": timezone}


def _shifted(days: DateRange, days_ago: int) -> DateRange:
    first, last, end = (
        (date.fromisoformat(day) - timedelta(days=days_ago)).isoformat()
        for day in (days.first, days.last, days.end)
    )
    return DateRange(first, last, end)


def measure_types(service: Service, dataset: Dataset, *, runs: int) -> list[Measurement]:
    """Run each type of standard query alone."""
    client = HttpClient(service, dataset)
    return [_measure_type(client, name, dataset, runs) for name in STANDARD_TYPES]


def _measure_type(client: HttpClient, name: str, dataset: Dataset, runs: int) -> Measurement:
    body = _body({"types": [name]}, 0, "UTC")
    responses = [client.send("standard", body) for _ in range(WARM_UPS + runs)][WARM_UPS:]
    cpu_ms = sum(response.cpu_s for response in responses) / runs * 1e3
    return Measurement(
        group=STANDARD_GROUP,
        title=name,
        unit="ms",
        runs=tuple(response.ms for response in responses),
        threshold=TYPE_MS,
        remark=f"CPU {cpu_ms:,.0f} ms",
        events=dataset.events,
    )


def measure_overviews(service: Service, dataset: Dataset, *, runs: int) -> list[Measurement]:
    """Open an overview alone, in UTC and in a zone, and then four at once."""
    at_once = f"each of {OVERVIEWS_AT_ONCE} at once, over different days"
    with overviews(service, dataset, 1) as single:
        alone = [
            _measure_opening(single, OVERVIEW, "UTC", service, runs),
            _measure_opening(single, f"the same in days of {ZONE}", ZONE, service, runs),
        ]
    with overviews(service, dataset, OVERVIEWS_AT_ONCE) as several:
        together = _measure_opening(several, at_once, "UTC", service, runs)
    return [
        *(replace(one, threshold=OVERVIEW_MS, events=dataset.events) for one in alone),
        replace(together, events=dataset.events),
    ]


def _measure_opening(
    opened: Overviews, title: str, timezone: str, service: Service, runs: int
) -> Measurement:
    for _ in range(WARM_UPS):
        opened.open(timezone)
    with measure_usage(pids_of(service)) as usage:
        turns = [opened.open(timezone) for _ in range(runs)]
    times_ms = tuple(ms for turn in turns for ms in turn)
    return Measurement(
        group=OVERVIEW_GROUP,
        title=title,
        unit="ms",
        runs=times_ms,
        remark=f"CPU of each {usage.cpu_s * 1e3 / len(times_ms):,.0f} ms",
    )
