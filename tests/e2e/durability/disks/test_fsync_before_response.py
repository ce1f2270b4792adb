"""Checks in the system calls of a worker that a 200 is written only after the covering fsync."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testing.service import Service
from tests.e2e.conftest import ServiceMaker
from tests.e2e.durability.disks.system_calls import SYNCING, ordering_error, parse_calls, traced

CONNECTIONS = 6
REQUESTS = 20
BATCH_SIZES = (1, 1, 7)


def send(service: Service, website: str, connection: int) -> list[str]:
    """Send single events and batches on one connection and return the name of each event."""
    sent: list[str] = []
    with service.session() as session:
        for number in range(REQUESTS):
            size = BATCH_SIZES[number % len(BATCH_SIZES)]
            names = [f"event_{connection}_{number}_{index}_" for index in range(size)]
            events = [{"name": name} for name in names]
            body = events[0] if size == 1 else events
            response = session.post(
                f"{service.url}/track?website_id={website}", json=body, timeout=30
            )
            assert response.status_code == 200, response.text
            sent += names
    return sent


@pytest.mark.slow
def test_no_200_is_sent_before_its_fsync(dedicated_service: ServiceMaker, tmp_path: Path) -> None:
    service, trace = dedicated_service().start(), tmp_path / "worker.trace"
    website = service.website()
    (worker,) = service.child_pids("worker")

    with traced(worker, trace), ThreadPoolExecutor(CONNECTIONS) as pool:
        senders = [pool.submit(send, service, website, number) for number in range(CONNECTIONS)]
        names = [name.encode() for sender in senders for name in sender.result()]
    calls = parse_calls(trace.read_text().splitlines())

    assert {
        name: field_error for name in names if (field_error := ordering_error(calls, name))
    } == {}
    unsynced = [call for call in calls if call.name not in SYNCING]
    assert {ordering_error(unsynced, name) for name in names} == {
        "the record was not synced before the 200"
    }


def hexed(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


LOG = "/data/log/worker-0"
SEGMENT = f"{LOG}/1.segment"
SOCKET = "27<TCP:[127.0.0.1:8080->127.0.0.1:4444]>"
OTHER_SOCKET = "28<TCP:[127.0.0.1:8080->127.0.0.1:5555]>"
FILE = f"26<{hexed(SEGMENT)}>"
RECORD = hexed("frame event_1_ frame event_2_")

MAKE = (
    f'2 1.0 openat(AT_FDCWD<{hexed("/")}>, "{hexed(SEGMENT)}", O_RDWR|O_CREAT|O_TRUNC, 0644)'
    f" = {FILE}"
)
READ = f'1 1.0 read({SOCKET}, "{hexed("POST / event_1_")}", 262144) = 15'
WRITE = f'2 1.0 pwrite64({FILE}, "{RECORD}", 29, 0) = 29'
SYNC = f"2 1.0 fdatasync({FILE}) = 0"
NAME = f"2 1.0 fsync(30<{hexed(LOG)}>) = 0"
REPLY = f'1 1.0 write({SOCKET}, "{hexed("HTTP/1.1 200 OK")}", 15) = 15'
REFUSAL = f'1 1.0 write({SOCKET}, "{hexed("HTTP/1.1 503 No")}", 15) = 15'
OTHER_REPLY = REPLY.replace(SOCKET, OTHER_SOCKET)


def cut(line: str) -> tuple[str, str]:
    """Split a call into the two lines that strace prints when another thread interleaves."""
    thread, time, call = line.split(" ", 2)
    name = call[: call.index("(")]
    return (
        f"{thread} {time} {call[: call.index(')')]} <unfinished ...>",
        f"{thread} {time} <... {name} resumed>{call[call.index(')') :]}",
    )


SYNC_BEGINS, SYNC_ENDS = cut(SYNC)
WRITE_BEGINS, WRITE_ENDS = cut(WRITE)
REPLY_BEGINS, REPLY_ENDS = cut(REPLY)


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param((READ, MAKE, WRITE, SYNC, NAME, REPLY), id="new segment"),
        pytest.param((READ, WRITE, SYNC, REPLY), id="older segment"),
        pytest.param((READ, WRITE, OTHER_REPLY, SYNC, REPLY), id="another's reply between"),
        pytest.param((READ, WRITE, SYNC_BEGINS, OTHER_REPLY, SYNC_ENDS, REPLY), id="long sync"),
        pytest.param(
            (READ, WRITE_BEGINS, OTHER_REPLY, WRITE_ENDS, SYNC, REPLY_BEGINS, SYNC, REPLY_ENDS),
            id="calls of two threads",
        ),
    ],
)
def test_correct_order_passes(trace: Sequence[str]) -> None:
    assert ordering_error(parse_calls(trace), b"event_1_") is None


@pytest.mark.parametrize(
    ("trace", "field_error"),
    [
        pytest.param((WRITE, SYNC, REPLY), "the request was not seen", id="no request"),
        pytest.param((READ, WRITE, SYNC), "the request was not answered with 200", id="no answer"),
        pytest.param(
            (READ, WRITE, SYNC, REFUSAL), "the request was not answered with 200", id="refused"
        ),
        pytest.param(
            (READ, WRITE, SYNC, OTHER_REPLY),
            "the request was not answered with 200",
            id="answered on another connection",
        ),
        pytest.param(
            (READ, REPLY), "the record was not written before the 200", id="never written"
        ),
        pytest.param(
            (READ, REPLY, WRITE, SYNC),
            "the record was not written before the 200",
            id="written after the answer",
        ),
        pytest.param(
            (READ, WRITE.replace("= 29", "= 12"), SYNC, REPLY),
            "the record was not written before the 200",
            id="written in part",
        ),
        pytest.param(
            (READ, WRITE.replace(hexed(".segment"), hexed(".sqlite")), SYNC, REPLY),
            "the record was not written before the 200",
            id="written elsewhere",
        ),
        pytest.param(
            (READ, WRITE, REPLY), "the record was not synced before the 200", id="never synced"
        ),
        pytest.param(
            (READ, WRITE, REPLY, SYNC),
            "the record was not synced before the 200",
            id="synced after the answer",
        ),
        pytest.param(
            (READ, WRITE, SYNC_BEGINS, REPLY, SYNC_ENDS),
            "the record was not synced before the 200",
            id="answered while it is synced",
        ),
        pytest.param(
            (READ, SYNC, WRITE, REPLY),
            "the record was not synced before the 200",
            id="synced before it is written",
        ),
        pytest.param(
            (READ, WRITE_BEGINS, SYNC.replace("2", "3", 1), WRITE_ENDS, REPLY),
            "the record was not synced before the 200",
            id="synced while it is written",
        ),
        pytest.param(
            (READ, WRITE, SYNC.replace("= 0", "= -1 EIO (Input/output error)"), REPLY),
            "the record was not synced before the 200",
            id="sync fails",
        ),
        pytest.param(
            (READ, WRITE, SYNC.replace(hexed("1.segment"), hexed("2.segment")), REPLY),
            "the record was not synced before the 200",
            id="another file is synced",
        ),
        pytest.param(
            (READ, MAKE, WRITE, SYNC, REPLY, NAME),
            "the name of the segment was not synced before the 200",
            id="the name comes late",
        ),
    ],
)
def test_wrong_order_is_detected(trace: Sequence[str], field_error: str) -> None:
    assert ordering_error(parse_calls(trace), b"event_1_") == field_error
