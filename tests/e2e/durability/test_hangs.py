"""The watchdog detects a process that hangs, kills it and replaces it."""

import os
import re
import signal

import pytest

from testing.service import Json, Service, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.traffic import Ledger, load, send_until_acknowledged

pytestmark = pytest.mark.slow

SHORT_TIMEOUTS = {"HEADRACE_WATCHDOG_TIMEOUT_S": "10"}
"""For a stopped process. On a busy machine the event loop of a busy one waits for seconds."""

COUNT: Json = {
    "table": "events",
    "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
}


def starts(service: Service) -> dict[str, float]:
    pattern = r'^headrace_process_starts_total\{process="(\w+)"\} (\S+)$'
    found = re.findall(pattern, service.get("/metrics").text, re.MULTILINE)
    return {process: float(count) for process, count in found}


def wait_replaced(service: Service, kind: str, stuck: int) -> None:
    def replaced() -> bool:
        pids = service.child_pids(kind)
        return stuck not in pids and len(pids) > 0

    wait_until(replaced, f"the {kind} is replaced")


def test_stuck_engine_is_restarted_while_ingestion_continues(
    dedicated_service: ServiceMaker,
) -> None:
    service, ledger = dedicated_service(workers=2, settings=SHORT_TIMEOUTS).start(), Ledger()
    website = service.website()
    (engine,) = service.child_pids("engine")
    assert starts(service) == {"engine": 1, "worker": 2}

    with load(service, website, ledger, name="load"):
        os.kill(engine, signal.SIGSTOP)
        send_until_acknowledged(ledger, 500)
        wait_replaced(service, "engine", engine)
        wait_until(
            lambda: service.send_query(website, COUNT).status_code == 200, "queries are answered"
        )

    assert set(ledger.statuses) == {200, 400}
    ledger.compare(service.counts(website, "events", "anonymous_id"))
    assert starts(service) == {"engine": 2, "worker": 2}
    assert '"process_hung"' in service.log_text()


def test_stuck_worker_is_restarted_while_the_other_one_serves(
    dedicated_service: ServiceMaker,
) -> None:
    service, ledger = dedicated_service(workers=2, settings=SHORT_TIMEOUTS).start(), Ledger()
    website = service.website()
    stuck = service.child_pids("worker")[0]

    with load(service, website, ledger, name="load"):
        os.kill(stuck, signal.SIGSTOP)
        wait_until(lambda: stuck not in service.child_pids("worker"), "the worker is killed")
        wait_until(lambda: len(service.child_pids("worker")) == 2, "there are two workers")
        send_until_acknowledged(ledger, 500)
    service.wait_ready()

    ledger.compare(service.counts(website, "events", "anonymous_id"))
    wait_until(lambda: starts(service)["worker"] == 3, "the new worker is counted")
    assert starts(service)["engine"] == 1


def test_busy_processes_are_not_restarted(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(settings=SHORT_TIMEOUTS).start()
    website = service.website()
    pids = [*service.child_pids("engine"), *service.child_pids("worker")]
    batch = [{"name": "busy", "properties": {"text": "x" * 500}}] * 10_000

    for _ in range(10):
        assert service.post(f"/track?website_id={website}", batch).status_code == 200
    assert service.count(website, "events") == 100_000

    assert [*service.child_pids("engine"), *service.child_pids("worker")] == pids


def test_restart_delays_grow_while_a_process_keeps_hanging(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(settings={"HEADRACE_WATCHDOG_TIMEOUT_S": "4"}).start()

    for _ in range(3):
        wait_until(service.is_ready, "the engine answers")
        (engine,) = service.child_pids("engine")
        os.kill(engine, signal.SIGSTOP)
        wait_replaced(service, "engine", engine)

    pauses = re.findall(
        r'"child":"engine","exit_code":-9,"restart_in_s":([\d.]+)', service.log_text()
    )
    assert [float(pause) for pause in pauses] == [0.1, 0.2, 0.4]
