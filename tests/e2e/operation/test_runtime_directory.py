"""Services leave nothing in the temporary directory, however they end."""

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from chaos.failing_calls import prepare_failing_calls
from testing.service import wait_until
from tests.e2e.conftest import ServiceMaker

pytestmark = pytest.mark.slow


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary directory with a path as short as in a usual installation."""
    with TemporaryDirectory(dir="/tmp") as made:
        yield Path(made)


def test_files_of_a_killed_supervisor_are_removed_at_the_next_start(
    dedicated_service: ServiceMaker, temporary: Path
) -> None:
    service = dedicated_service(settings={"TMPDIR": str(temporary)}).start()
    website = service.website()

    for _ in range(3):
        os.kill(service.pid, signal.SIGKILL)
        wait_until(lambda: service.exit_code() is not None, "the supervisor is gone")
        service.start()
    service.post(f"/track?website_id={website}", {"name": "signup"})

    assert service.count(website, "events") == 1
    (runtime_directory,) = temporary.iterdir()
    assert len(list(runtime_directory.iterdir())) == 1
    assert service.stop() == 0
    assert list(temporary.iterdir()) == []


def test_two_services_are_independent(dedicated_service: ServiceMaker, temporary: Path) -> None:
    services = [dedicated_service(settings={"TMPDIR": str(temporary)}).start() for _ in range(2)]
    for number, service in enumerate(services, start=1):
        website = service.website()
        service.post(f"/track?website_id={website}", [{"name": "signup"}] * number)
        assert service.count(website, "events") == number
    assert len(list(temporary.iterdir())) == 2


def test_commands_find_a_service_that_started_on_a_full_disk_once_there_is_space(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    """A file system that copies on write, as btrfs does, overwrites nothing while it is full."""
    calls = prepare_failing_calls(tmp_path)
    if calls is None:
        pytest.skip("there is no C compiler")
    service = dedicated_service(settings=calls.environment).start()
    website = service.website()
    service.kill()
    lock = service.data / "lock"
    before = lock.read_text()

    with calls.failing(0, "write", errno.ENOSPC, str(lock)):
        service.start()
        assert lock.read_text() == before
        with pytest.raises(AssertionError, match="it has not published where its socket is"):
            service.command("storage")
    wait_until(lambda: lock.read_text() != before, "the lock file has the service's directory")
    service.post(f"/track?website_id={website}", {"name": "signup"})

    stored = {(row["website"], row["table"]): row["rows"] for row in service.command("storage")}
    assert stored[website, "events"] == 1
