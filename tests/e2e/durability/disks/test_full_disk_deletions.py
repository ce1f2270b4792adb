"""An erasure that begins on a full disk ends when there is space, whatever happens in between.

chDB cannot write the file of the deletion, and reports success all the same.
"""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from requests import ConnectionError  # noqa: A004 - the name that requests gives it

from chaos.disk import DataDisk, DiskUnavailable, memory_disk, missing_for_memory
from testing.service import Key, Service, bearer, running_service, wait_until
from tests.e2e.erasure.test_erase_command import event, send

STORE_BYTES = 256 * 1024 * 1024

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(missing_for_memory()),
        reason=f"a disk in memory needs {missing_for_memory()}",
    ),
]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[DataDisk]:
    try:
        with memory_disk(tmp_path, store_bytes=STORE_BYTES) as opened:
            yield opened
    except DiskUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def service(disk: DataDisk) -> Iterator[Service]:
    with running_service(disk.data) as started:
        yield started


def test_an_erasure_that_began_on_a_full_disk_is_carried_out_after_a_kill(
    disk: DataDisk, service: Service
) -> None:
    website, key = service.website(), service.key("manage:data")
    send(service, website, "/track", [event("ann"), event("eve")])
    assert service.counts(website, "events", "anonymous_id") == {"ann": 1, "eve": 1}

    filled = disk.fill_store()
    call = Thread(target=request_erasure, args=(service, website, key))
    call.start()
    wait_until(lambda: bool(broken_mutations(disk)), "a mutation is cut off")
    service.kill()
    call.join()
    disk.free_space(filled)
    service.start()

    wait_until(
        lambda: service.counts(website, "events", "anonymous_id") == {"eve": 1},
        "the visitor is erased",
    )
    assert not broken_mutations(disk)


def request_erasure(service: Service, website: str, key: Key) -> None:
    """Ask for an erasure, and be cut off: it cannot be carried out on a full disk."""
    with pytest.raises(ConnectionError):
        service.session().post(
            f"{service.url}/v1/erasures?website_id={website}",
            json={"anonymousId": "ann"},
            headers=bearer(key),
            timeout=120,
        )


def broken_mutations(disk: DataDisk) -> list[Path]:
    files = disk.data.glob("store/store/*/*/mutation_*.txt")
    return [file for file in files if not file.read_bytes().endswith(b"\n")]
