"""What services leave in the temporary directory: nothing, whatever becomes of them."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.conftest import ServiceMaker
from tests.e2e.service import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary directory with a path as short as people have it."""
    with TemporaryDirectory(dir="/tmp") as made:
        yield Path(made)


def test_killed_supervisor_leaves_nothing_once_the_service_was_started_again(
    own_service: ServiceMaker, temporary: Path
) -> None:
    service = own_service(settings={"TMPDIR": str(temporary)}).start()
    website = service.website()

    for _ in range(3):
        os.kill(service.pid, signal.SIGKILL)
        wait_until(lambda: service.exit_code() is not None, "the supervisor is gone")
        service.start()
    service.post(f"/track?website_id={website}", {"name": "signup"})

    assert service.count(website, "events") == 1
    (place,) = temporary.iterdir()
    assert len(list(place.iterdir())) == 1
    assert service.stop() == 0
    assert list(temporary.iterdir()) == []


def test_two_services_do_not_meet(own_service: ServiceMaker, temporary: Path) -> None:
    services = [own_service(settings={"TMPDIR": str(temporary)}).start() for _ in range(2)]
    for number, service in enumerate(services, start=1):
        website = service.website()
        service.post(f"/track?website_id={website}", [{"name": "signup"}] * number)
        assert service.count(website, "events") == number
    assert len(list(temporary.iterdir())) == 2
