"""Acknowledged events are stored exactly once, whichever process dies at whatever time."""

import os
import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import filterfalse
from pathlib import Path

import pytest

from testing.service import Json, Service, bearer, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import UNAVAILABLE, error_envelope, outcome, success
from tests.e2e.traffic import Ledger, load, send_until_acknowledged

pytestmark = pytest.mark.slow

COUNT: Json = {
    "table": "events",
    "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
}


def stored(service: Service, website: str) -> dict[str, int]:
    return service.counts(website, "events", "anonymous_id")


def test_acknowledged_events_survive_a_clean_stop(dedicated_service: ServiceMaker) -> None:
    service, ledger = dedicated_service(workers=2).start(), Ledger()
    website = service.website()

    with load(service, website, ledger, name="before"):
        send_until_acknowledged(ledger, 2000)
        code = service.stop()
    service.restart()

    assert code == 0
    ledger.compare(stored(service, website))


def test_sigterm_answers_accepted_requests_and_loses_nothing(
    dedicated_service: ServiceMaker,
) -> None:
    service, ledger = dedicated_service().start(), Ledger()
    website = service.website()

    for number in range(3):  # stops before the engine has stored much
        with load(service, website, ledger, name=f"round{number}-"):
            assert service.stop() == 0
        service.restart()

    ledger.compare(stored(service, website))


def test_acknowledged_events_survive_kill_9_of_all_processes(
    dedicated_service: ServiceMaker,
) -> None:
    service, ledger = dedicated_service(workers=2).start(), Ledger()
    website = service.website()

    for number in range(3):
        with load(service, website, ledger, name=f"round{number}-"):
            send_until_acknowledged(ledger, 1000)
            service.kill()
        service.restart()
        ledger.compare(stored(service, website))


def test_event_ids_and_idempotency_keys_survive_kill_9(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    website = service.website()
    path, headers = f"/track?website_id={website}", {"Idempotency-Key": "once"}
    service.post(path, {"name": "first", "eventId": "one"})
    service.post(path, [{"name": "second"}] * 2, headers=headers)

    service.kill()
    service.restart()
    again = service.post(path, {"name": "third", "eventId": "one"})
    repeated = service.post(path, {"name": "fourth"}, headers=headers)

    assert outcome(again) == (200, success("/track"))
    assert outcome(repeated) == (200, success("/track", 2))
    assert service.counts(website, "events", "event_name") == {"first": 1, "second": 2}


def test_ingestion_continues_while_the_engine_is_down(dedicated_service: ServiceMaker) -> None:
    service, ledger = dedicated_service(workers=2).start(), Ledger()
    website = service.website()

    with load(service, website, ledger, name="load"):
        with stopped_engine(service):
            send_until_acknowledged(ledger, 1000)
        for _ in range(3):
            os.kill(engine(service), signal.SIGKILL)
            send_until_acknowledged(ledger, 500)
            wait_until(lambda: is_answered(service, website), "queries are answered")

    ledger.compare(stored(service, website))
    assert set(ledger.statuses) == {200, 400}


def is_answered(service: Service, website: str) -> bool:
    return service.send_query(website, COUNT).status_code == 200


def engine(service: Service) -> int:
    wait_until(lambda: len(service.child_pids("engine")) == 1, "there is an engine")
    return service.child_pids("engine")[0]


@contextmanager
def stopped_engine(service: Service) -> Generator[None]:
    """Stop the engine process with SIGSTOP, like a busy or swapping machine; resume it later."""
    pid = engine(service)
    os.kill(pid, signal.SIGSTOP)
    yield
    with suppress(ProcessLookupError):  # the test may have killed it
        os.kill(pid, signal.SIGCONT)


@contextmanager
def killed_engine(service: Service) -> Generator[None]:
    """Kill the engine process; it is started again after the block, when the supervisor goes on."""
    pid = engine(service)
    os.kill(service.pid, signal.SIGSTOP)
    try:
        os.kill(pid, signal.SIGKILL)
        yield
    finally:
        os.kill(service.pid, signal.SIGCONT)


def test_queries_are_503_until_the_engine_is_back(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    website = service.website()
    service.post(f"/track?website_id={website}", {"name": "before"})
    assert service.count(website, "events") == 1
    rejections: list[tuple[int, str, str]] = []

    def answered() -> bool:
        response = service.send_query(website, COUNT)
        if response.status_code != 200:
            body = response.json()
            assert int(response.headers["Retry-After"]) >= 1
            assert body["success"] is False
            rejections.append((response.status_code, body["error"], body["code"]))
        return response.status_code == 200

    with killed_engine(service):
        accepted = service.post(f"/track?website_id={website}", {"name": "meanwhile"})
        assert not answered()

    wait_until(answered, "queries are answered")
    assert outcome(accepted) == (200, success("/track"))
    assert set(rejections) == {(503, "Service unavailable", "UNAVAILABLE")}
    assert service.counts(website, "events", "event_name") == {"before": 1, "meanwhile": 1}


def test_readiness_reports_that_the_engine_is_down(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()

    with killed_engine(service):
        wait_until(lambda: service.get("/ready").status_code == 503, "/ready is 503")
        assert service.get("/health").status_code == 200

    service.wait_ready()


def test_dead_worker_is_replaced_and_loses_nothing(dedicated_service: ServiceMaker) -> None:
    service, ledger = dedicated_service(workers=2).start(), Ledger()
    website = service.website()

    with load(service, website, ledger, name="load"):
        for _ in range(2):
            wait_until(lambda: len(service.child_pids("worker")) == 2, "there are two workers")
            os.kill(service.child_pids("worker")[0], signal.SIGKILL)
            send_until_acknowledged(ledger, 500)
    wait_until(lambda: len(service.child_pids("worker")) == 2, "there are two workers")
    service.wait_ready()

    ledger.compare(stored(service, website))


def test_children_exit_when_their_supervisor_is_killed(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(workers=2).start()
    website = service.website()
    children = [*service.child_pids("worker"), *service.child_pids("engine")]
    assert len(children) == 3
    service.post(f"/track?website_id={website}", {"name": "a"})

    os.kill(service.pid, signal.SIGKILL)

    wait_until(lambda: not any(is_running(pid) for pid in children), "the children are gone")
    service.kill()
    service.restart()
    assert service.count(website, "events") == 1


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_torn_log_tail_does_not_prevent_startup(
    dedicated_service: ServiceMaker,
) -> None:
    service, ledger = dedicated_service().start(), Ledger()
    website = service.website()
    with load(service, website, ledger, name="load"), stopped_engine(service):
        send_until_acknowledged(ledger, 200)
        service.kill()

    for segment in newest_segments(service.data):
        end = len(segment.read_bytes().rstrip(b"\0"))
        with segment.open("r+b") as file:
            file.seek(end)
            file.write(b"\x00\x01half a record")
    service.restart()

    ledger.compare(stored(service, website))
    response = service.post(
        f"/track?website_id={website}", {"name": "after"}, headers=bearer(service.master)
    )
    assert outcome(response) == (200, success("/track"))
    assert service.counts(website, "events", "event_name")["after"] == 1


def newest_segments(data: Path) -> list[Path]:
    """Return the last file that each writer of the log appended to."""
    found = [max(log.glob("*.segment")) for log in (data / "log").iterdir()]
    assert found
    return found


def test_retrying_unanswered_requests_stores_them_exactly_once(
    dedicated_service: ServiceMaker,
) -> None:
    service, ledger = dedicated_service(workers=2).start(), Ledger()
    website = service.website()
    with load(service, website, ledger, name="load"):
        send_until_acknowledged(ledger, 500)
        service.kill()
    service.restart()

    for one in ledger.unanswered:
        if not ledger.is_bad(one):
            again = {"name": "load", "anonymousId": one, "eventId": one}
            response = service.post(f"/track?website_id={website}", again)
            assert outcome(response) == (200, success("/track"))

    assert ledger.unanswered, "every request was answered before the kill: the test saw nothing"
    expected = [*ledger.acknowledged, *filterfalse(ledger.is_bad, ledger.unanswered)]
    assert stored(service, website) == dict.fromkeys(expected, 1)


FILE_LIMIT_BYTES = 1_048_576


@contextmanager
def full_disk(service: Service) -> Generator[None]:
    """Limit the file size of the workers to one MiB, which they handle like a full disk."""
    for pid in service.child_pids("worker"):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_LIMIT_BYTES, resource.RLIM_INFINITY))
    yield
    for pid in service.child_pids("worker"):
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)


def test_request_that_does_not_fit_on_the_disk_is_503_and_never_stored(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    path = f"/track?website_id={website}"
    big = [{"name": "big", "properties": {"text": "x" * 500}}] * 5000

    with full_disk(service):
        before = service.post(path, {"name": "small"})
        rejected = [service.post(path, big) for _ in range(3)]
        meanwhile = service.post(path, {"name": "small"})
    after = service.post(path, big)

    assert outcome(before) == outcome(meanwhile) == (200, success("/track"))
    assert [error_envelope(response) for response in rejected] == [UNAVAILABLE] * 3
    assert all(int(response.headers["Retry-After"]) >= 1 for response in rejected)
    assert outcome(after) == (200, success("/track", 5000))
    expected = {"small": 2, "big": 5000}
    assert service.counts(website, "events", "event_name") == expected
    service.kill()
    service.restart()
    assert service.counts(website, "events", "event_name") == expected


def test_request_that_did_not_fit_may_be_repeated_with_its_keys(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    path, headers = f"/track?website_id={website}", {"Idempotency-Key": "once"}
    text = {"text": "x" * 500}
    big = [{"name": "big", "eventId": str(n), "properties": text} for n in range(5000)]

    with full_disk(service):
        rejected = service.post(path, big, headers=headers)
    responses = [service.post(path, big, headers=headers) for _ in range(2)]
    responses.append(service.post(path, big))

    assert error_envelope(rejected) == UNAVAILABLE
    assert [outcome(response) for response in responses] == [(200, success("/track", 5000))] * 3
    assert service.count(website, "events") == 5000
