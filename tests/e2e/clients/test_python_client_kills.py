"""What `track` returned for is stored once, whatever is killed in between."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace_client import Headrace
from testing.service import Service
from tests.e2e.conftest import ServiceMaker

PROGRAM = Path(__file__).with_name("tracking_program.py")
CLIENT_SOURCE = Path(__file__).parents[3] / "clients" / "python" / "src"
PROCESSES = 2
ROUNDS = 9
FLUSH_TIMEOUT_S = 90


@contextmanager
def programs(
    service: Service, website: str, outbox: Path, journal: Path, name: str
) -> Generator[None]:
    """Run processes that report events with one outbox, and kill them."""
    environment = {**os.environ, "PYTHONPATH": str(CLIENT_SOURCE)}
    arguments = [sys.executable, str(PROGRAM), service.url, service.master.secret, website]
    with journal.open("ab") as output:
        running = [
            subprocess.Popen(
                [*arguments, str(outbox), f"{name}-{process}"], stdout=output, env=environment
            )
            for process in range(PROCESSES)
        ]
    try:
        yield
        assert [one.poll() for one in running] == [None] * PROCESSES
    finally:
        for one in running:
            one.send_signal(signal.SIGKILL)
        for one in running:
            one.wait()


def wait_for_growth(journal: Path, *, by: int) -> None:
    """Wait until so many bytes were added, for a machine of any speed."""
    target = journal.stat().st_size + by if journal.exists() else by
    while not journal.exists() or journal.stat().st_size < target:
        time.sleep(0.01)


@pytest.mark.slow
def test_events_survive_kills_of_the_sender_and_of_the_service_and_are_stored_once(
    tmp_path: Path, dedicated_service: ServiceMaker
) -> None:
    service = dedicated_service().start()
    website = service.website()
    service.key()  # so that the directory is open before the first kill
    outbox, journal = tmp_path / "outbox.sqlite", tmp_path / "journal"
    chance = random.Random(20261123)  # noqa: S311 - not for cryptography

    for number in range(ROUNDS):
        with programs(service, website, outbox, journal, f"round-{number}"):
            wait_for_growth(journal, by=4000)
            if number % 3 == 1:
                service.kill()
                wait_for_growth(journal, by=2000)
                service.restart()
            time.sleep(chance.uniform(0, 0.4))
    with Headrace(service.url, service.master.secret, outbox=outbox) as client:
        assert client.flush(FLUSH_TIMEOUT_S)
        stats = client.stats()

    stored = service.counts(website, "events", "properties.n")
    reported = journal.read_text().split()
    assert {number for number, count in stored.items() if count != 1} == set()
    assert set(reported) - stored.keys() == set()
    # At most one call of each thread was interrupted between its commit and its return.
    assert len(stored) - len(reported) <= ROUNDS * PROCESSES * 2
    assert (stats.pending, stats.refused, stats.dropped) == (0, 0, 0)
