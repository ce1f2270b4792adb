"""The service returns 503 when the disk is nearly full or the backlog is large, and recovers."""

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from testing.service import Service, log_until_a_process_dies, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import UNAVAILABLE, error_envelope, outcome, success

pytestmark = pytest.mark.slow

MEBIBYTE = 1_048_576


def big_batch() -> list[dict[str, object]]:
    return [{"name": "big", "properties": {"text": "x" * 500}}] * 500


def condition(service: Service, part: str) -> str:
    error: str = service.get("/ready").json()["parts"][part]
    return error


def assert_rejected(service: Service, website: str) -> None:
    """Check that events of any size get 503 with Retry-After, and that the service is not ready."""
    for body in ({"name": "small"}, big_batch()):
        response = service.post(f"/track?website_id={website}", body)
        assert error_envelope(response) == UNAVAILABLE
        assert int(response.headers["Retry-After"]) >= 1
    assert service.get("/ready").status_code == 503


def test_too_much_backlog_is_503_until_the_engine_has_stored_it(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={"HEADRACE_MAX_BACKLOG_BYTES": str(2 * MEBIBYTE)}).start()
    website = service.website()
    path, accepted = f"/track?website_id={website}", 0
    (engine,) = service.child_pids("engine")

    os.kill(engine, signal.SIGSTOP)
    while (response := service.post(path, big_batch())).status_code == 200:
        accepted += 500
    assert_rejected(service, website)
    rejected_by = condition(service, "backlog")
    os.kill(engine, signal.SIGCONT)
    service.wait_ready()
    after = service.post(path, {"name": "small"})

    assert error_envelope(response) == UNAVAILABLE
    assert rejected_by == "unavailable"
    assert outcome(after) == (200, success("/track"))
    assert service.counts(website, "events", "event_name") == {"big": accepted, "small": 1}


@contextmanager
def small_disk(service: Service, *, mebibytes: int) -> Generator[None]:
    """Mount a small file system for the service; skip the test if mounting is not permitted."""
    path = str(service.data)
    service.data.mkdir()
    if not done("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=0700", "tmpfs", path):
        pytest.skip("only root may mount a small file system")
    try:
        yield
    finally:
        service.kill()
        wait_until(lambda: done("umount", path), "the small file system is unmounted")


def done(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_nearly_full_disk_is_503_until_space_is_freed(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(settings={"HEADRACE_MIN_FREE_BYTES": str(100 * MEBIBYTE)})
    with small_disk(service, mebibytes=300):
        service.start()
        website = service.website()
        path = f"/track?website_id={website}"
        before = service.post(path, {"name": "before"})
        filler = service.data.joinpath("ballast")

        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 250 * MEBIBYTE)
        wait_until(lambda: condition(service, "disk") == "unavailable", "the disk is low")
        assert_rejected(service, website)
        stored = service.counts(website, "events", "event_name")
        filler.unlink()
        service.wait_ready()
        after = service.post(path, {"name": "after"})

        assert outcome(before) == outcome(after) == (200, success("/track"))
        assert stored == {"before": 1}
        assert service.counts(website, "events", "event_name") == {"before": 1, "after": 1}


def test_first_start_on_a_full_disk_has_its_reason_in_the_log(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service()
    with small_disk(service, mebibytes=1):
        until_death = log_until_a_process_dies(service.data)
    begin = f"cannot prepare the store {service.data / 'store'}"
    reason = f"{begin}: ClickHouse rejected a statement: NOT_ENOUGH_SPACE (243)"
    assert [
        (line["event_name"], line["reason"])
        for line in until_death
        if (line["process"], line["level"]) == ("engine", "error")
    ] == [("process_failed", reason)]
