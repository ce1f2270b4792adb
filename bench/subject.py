"""The service that is measured: the real `headrace serve`, with a website, a key, and its books."""

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.processes import cpu_s, pids_of, spending, wait_until_quiet
from bench.wrk import Driven, Load, drive
from bench.yardsticks import Server
from tests.e2e.service import Service, wait_until

AS_MANY_WORKERS_AS_IT_WANTS = 0
_STORED_TIMEOUT_S = 120.0
_LOG_SHOWN = 4000
_COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]}


class Whole(NamedTuple):
    """What a load cost altogether: `cpu_s` of all processes until everything was stored."""

    driven: Driven
    events: int
    worker_cpu_s: float
    cpu_s: float


class Subject:
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
        """Where a generator sends; the time of the workers counts."""
        return Server(f"{self.service.url}/track", self.workers, self.authorization)

    def drive(
        self, load: Load, *, events_a_request: int, on_sent: Callable[[], None] = lambda: None
    ) -> Whole:
        """Send, wait until everything is stored and at rest, and compare the counts.

        At its end wrk hangs up on what is under way; that may be stored too, and nothing else.
        """
        stored_before, worker_before_s = self.stored(), cpu_s(self.workers)
        with spending(self.pids) as spent:
            driven = drive(
                self.server.url,
                load,
                self.service.data.parent,
                authorization=self.authorization,
            )
            worker_cpu_s = cpu_s(self.workers) - worker_before_s
            on_sent()
            events = self.stored() - stored_before
            wait_until_quiet(self.pids)
        seen = driven.requests * events_a_request
        under_way = load.connections * events_a_request
        assert seen <= events <= seen + under_way, f"{seen} events got a 200, {events} are stored"
        return Whole(driven, events, worker_cpu_s, spent.cpu_s)

    def metric(self, name: str, *labels: str) -> float:
        """Return the sum of a metric's values, of those alone that have all labels."""
        lines = self.service.get("/metrics").text.splitlines()
        found = [
            line
            for line in lines
            if line.startswith((f"{name} ", f"{name}{{")) and all(label in line for label in labels)
        ]
        return sum(float(line.rpartition(" ")[2]) for line in found)

    def stored(self) -> int:
        """Count the events of the website over HTTP, which sees everything acknowledged.

        While much is still to be stored the answer is a 503, and it is asked again.
        """
        wait_until(self._answers, "what was sent is stored", timeout_s=_STORED_TIMEOUT_S)
        return self.service.count(self.website, "events", key=self.key)

    def _answers(self) -> bool:
        reply = self.service.ask(self.website, _COUNT, key=self.key)
        assert reply.status_code in {200, 503}, reply.text
        return reply.status_code == 200


@contextmanager
def subject(
    folder: Path, *, settings: Mapping[str, str] | None = None, name: str = "data"
) -> Generator[Subject]:
    """Run a service in a folder."""
    service = Service(folder / name, workers=AS_MANY_WORKERS_AS_IT_WANTS, settings=settings).start()
    try:
        yield Subject(service)
        service.stop()
    except AssertionError:
        sys.stderr.write(service.log_text()[-_LOG_SHOWN:])  # its directory will be gone
        raise
    finally:
        service.kill()
