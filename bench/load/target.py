"""The measured service: the real `headrace serve`, with a website, a key and event counts."""

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.baselines.servers import Server
from bench.load.processes import cpu_s, measure_usage, pids_of, wait_until_idle
from bench.load.wrk import Load, WrkResult, run_wrk
from testing.service import Service, running_service, wait_until

DEFAULT_WORKERS = 0
_STORED_TIMEOUT_S = 120.0
_LOG_TAIL_CHARS = 4000
_COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]}


class LoadCost(NamedTuple):
    """The total cost of a load. `cpu_s` is that of all processes until everything was stored."""

    result: WrkResult
    events: int
    worker_cpu_s: float
    cpu_s: float


class TargetService:
    """A service on a fresh directory."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.website = service.website()
        self.key = service.key()
        self.authorization = f"Bearer {self.key.secret}"
        self.pids = pids_of(service)
        self.workers = tuple(service.child_pids("worker"))

    @property
    def server(self) -> Server:
        """The URL for load generators. The CPU time of the workers counts."""
        return Server(f"{self.service.url}/track", self.workers, self.authorization)

    def run_load(
        self, load: Load, *, events_per_request: int, on_sent: Callable[[], None] = lambda: None
    ) -> LoadCost:
        """Send, wait until everything is stored and the processes are idle, and compare the counts.

        At the end wrk closes connections with requests in flight. Only those may be stored in
        addition.
        """
        stored_before, worker_before_s = self.count_stored(), cpu_s(self.workers)
        with measure_usage(self.pids) as usage:
            result = run_wrk(
                self.server.url,
                load,
                self.service.data.parent,
                authorization=self.authorization,
            )
            worker_cpu_s = cpu_s(self.workers) - worker_before_s
            on_sent()
            events = self.count_stored() - stored_before
            wait_until_idle(self.pids)
        acknowledged = result.requests * events_per_request
        in_flight = load.connections * events_per_request
        assert acknowledged <= events <= acknowledged + in_flight, (
            f"{acknowledged} events got a 200, {events} are stored"
        )
        return LoadCost(result, events, worker_cpu_s, usage.cpu_s)

    def metric(self, name: str, *labels: str) -> float:
        """Return the sum of a metric's values, restricted to those with all given labels."""
        lines = self.service.get("/metrics").text.splitlines()
        matching = [
            line
            for line in lines
            if line.startswith((f"{name} ", f"{name}{{")) and all(label in line for label in labels)
        ]
        return sum(float(line.rpartition(" ")[2]) for line in matching)

    def count_stored(self) -> int:
        """Count the events of the website over HTTP, which includes everything acknowledged.

        While the backlog is large the response is 503, and the query is repeated.
        """
        wait_until(self._is_queryable, "what was sent is stored", timeout_s=_STORED_TIMEOUT_S)
        return self.service.count(self.website, "events", key=self.key)

    def _is_queryable(self) -> bool:
        response = self.service.send_query(self.website, _COUNT, key=self.key)
        assert response.status_code in {200, 503}, response.text
        return response.status_code == 200


@contextmanager
def run_target(
    folder: Path, *, settings: Mapping[str, str] | None = None, name: str = "data"
) -> Generator[TargetService]:
    """Run a service in a folder."""
    with running_service(
        folder / name, workers=DEFAULT_WORKERS, settings=settings or {}
    ) as service:
        try:
            yield TargetService(service)
            service.stop()
        except AssertionError:  # its directory is deleted on exit
            sys.stderr.write(service.log_text()[-_LOG_TAIL_CHARS:])
            raise
