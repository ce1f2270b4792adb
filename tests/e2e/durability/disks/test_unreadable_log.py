"""What a service promises while its engine cannot read an event log."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testing.service import HEADRACE, Service, run_to_end, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import INTERNAL, UNAVAILABLE, error_envelope, outcome, success

pytestmark = pytest.mark.slow


@contextmanager
def unreadable(log: Path) -> Generator[None]:
    """Make the engine fail to read the segments of a log; its worker appends to the open file."""
    segments = list(log.glob("*.segment"))
    for segment in segments:
        segment.rename(segment.with_suffix(".away"))
        segment.mkdir()
    yield
    for segment in segments:
        segment.rmdir()
        segment.with_suffix(".away").rename(segment)


def unready_parts(service: Service) -> set[str]:
    response = service.get("/ready")
    parts: dict[str, str] = response.json()["parts"]
    unready = {name for name, status in parts.items() if status != "ready"}
    assert response.status_code == (503 if unready else 200)
    return unready


def test_ack_after_store_fails_while_a_log_cannot_be_read_and_stores_all_afterwards(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={"HEADRACE_ACK_MODE": "stored"}).start()
    website = service.website()
    path = f"/track?website_id={website}"
    before = service.post(path, {"name": "before"})

    with unreadable(service.data / "log" / "worker-0"):
        unknown = service.post(path, {"name": "unknown"})
        rejected = service.post(path, {"name": "rejected"})
        assert unready_parts(service) == {"acknowledgements", "engine"}
        assert service.counts(website, "events", "event_name") == {"before": 1}
    wait_until(lambda: not unready_parts(service), "/ready is 200", timeout_s=120)
    after = service.post(path, {"name": "after"})

    assert outcome(before) == outcome(after) == (200, success("/track"))
    assert error_envelope(unknown) == INTERNAL
    assert error_envelope(rejected) == UNAVAILABLE
    expected = {"before": 1, "unknown": 1, "after": 1}
    assert service.counts(website, "events", "event_name") == expected


def back_up(service: Service, file: Path, *options: str) -> tuple[int, str]:
    """Run `headrace backup`; return its exit code and its last line on standard error."""
    done = run_to_end([HEADRACE, "backup", str(file), "--data", str(service.data), *options])
    return done.returncode, done.stderr.splitlines()[-1]


LACKING = (
    "headrace: cannot take a snapshot: acknowledged events cannot be read now, in the log "
    "worker-0, and a backup would lack them; repair the disk, or back up the rest with --partial"
)
PARTIAL = (
    "headrace: the backup is partial: it lacks acknowledged events of the log worker-0, which "
    "could not be read"
)


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "stopped"])
def test_backup_that_would_lack_acknowledged_events_fails_unless_it_may_be_partial(
    dedicated_service: ServiceMaker, tmp_path: Path, is_running: bool
) -> None:
    service = dedicated_service().start()
    website, file = service.website(), tmp_path / "target" / "backup.tar.zst"
    file.parent.mkdir()
    path = f"/track?website_id={website}"
    service.post(path, {"name": "stored"})
    assert service.count(website, "events") == 1
    with unreadable(service.data / "log" / "worker-0"):
        service.post(path, {"name": "unreadable"})
        if is_running:
            wait_until(lambda: unready_parts(service) == {"engine"}, "the engine noticed")
        else:
            service.kill()
        complete = back_up(service, file)
        assert list(file.parent.iterdir()) == []
        partial = back_up(service, file, "--partial")
    assert (complete, partial) == ((1, LACKING), (0, PARTIAL))

    copy = Service(tmp_path / "restored")
    restored = copy.command("restore", str(file))
    try:
        copy.start()
        assert restored["unreadable_logs"] == ["worker-0"]
        assert copy.counts(website, "events", "event_name") == {"stored": 1}
    finally:
        copy.kill()
