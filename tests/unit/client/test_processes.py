"""Programs that fork, end or share an outbox lose nothing and send nothing twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace_client import Headrace
from headrace_client.testing import FakeHeadrace

pytestmark = pytest.mark.slow

CLIENT_SOURCE = Path(__file__).parents[3] / "clients" / "python" / "src"
TIMEOUT_S = 60

BEGIN = """
import os, sys, threading
from headrace_client import Headrace
url, outbox = sys.argv[1:]
client = Headrace(url, "key", outbox=outbox or None, linger_s=0.0)
"""


def run(code: str, server: FakeHeadrace, outbox: Path | str) -> str:
    """Run a program that has a client, and return what it printed."""
    warnings = ("error", "ignore::DeprecationWarning")  # which is of forks beside threads
    python = (sys.executable, *(f"-W{one}" for one in warnings))
    done = subprocess.run(
        [*python, "-c", BEGIN + code, server.url, str(outbox)],
        env={**os.environ, "PYTHONPATH": str(CLIENT_SOURCE)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_program_that_ends_sends_first(server: FakeHeadrace, tmp_path: Path) -> None:
    run('client.track("a")', server, tmp_path / "outbox")
    assert server.event_names() == ["a"]


def test_program_that_reports_nothing_ends_without_a_warning(
    server: FakeHeadrace, tmp_path: Path
) -> None:
    """From Python 3.13 on a connection to SQLite warns that is not closed."""
    run("", server, tmp_path / "outbox")
    assert server.requests == []


def test_program_that_ends_sends_what_is_in_memory(server: FakeHeadrace) -> None:
    run('client.track("a")', server, "")
    assert server.event_names() == ["a"]


FORK = """
client.track("parent before")
client.flush()
child = os.fork()
if not child:
    client.track("child")
    client.flush()
    os._exit(0)
client.track("parent")
client.flush()
assert os.waitpid(child, 0)[1] == 0
client.track("parent after")
"""


@pytest.mark.parametrize("outbox", ["file", ""])
def test_both_sides_of_a_fork_can_use_the_client(
    server: FakeHeadrace, tmp_path: Path, outbox: str
) -> None:
    run(FORK, server, str(tmp_path / outbox) if outbox else "")

    events = ["child", "parent", "parent after", "parent before"]
    assert sorted(server.event_names()) == events
    assert sorted(path for path, _ in server.requests) == ["/track"] * len(server.requests)


FORKS_UNDER_LOAD = """
def report(name):
    for number in range(200):
        client.track(name, {"n": number})

threads = [threading.Thread(target=report, args=(f"thread {n}",)) for n in range(3)]
for thread in threads:
    thread.start()
children = []
for number in range(8):
    child = os.fork()
    if not child:
        report(f"child {number}")
        os._exit(0)
    children.append(child)
for thread in threads:
    thread.join()
print([os.waitpid(child, 0)[1] for child in children])
assert client.flush()
"""


def test_forks_while_other_threads_report_lose_nothing(
    server: FakeHeadrace, tmp_path: Path
) -> None:
    printed = run(FORKS_UNDER_LOAD, server, tmp_path / "outbox")

    names = [*(f"thread {n}" for n in range(3)), *(f"child {n}" for n in range(8))]
    expected = {(name, number) for name in names for number in range(200)}
    assert printed == f"{[0] * 8}\n"
    assert {(one["name"], one["properties"]["n"]) for one in server.items()} == expected
    assert len(server.items()) == len(expected)
    assert sum(count for _, count in server.requests) == len(expected)


FORKS_OF_THREADS = """
others = [Headrace(url, "key", outbox=f"{outbox} {n}", linger_s=0.0) for n in range(2)]

def fork(number):
    for _ in range(40):
        client.track(f"thread {number}")
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)

threads = [threading.Thread(target=fork, args=(n,), daemon=True) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(40)
print([thread.is_alive() for thread in threads], flush=True)
if any(thread.is_alive() for thread in threads):
    os._exit(0)
"""


def test_threads_that_fork_at_the_same_time_go_on(server: FakeHeadrace, tmp_path: Path) -> None:
    printed = run(FORKS_OF_THREADS, server, tmp_path / "outbox")

    assert printed == f"{[False] * 4}\n"
    assert sorted(server.event_names()) == sorted(f"thread {n % 4}" for n in range(160))


ORPHAN = """
if os.fork():
    client.track("parent")
    client.flush()
    os._exit(0)
client.track("orphan")
client.flush()
"""


def test_child_whose_parent_ended_goes_on_sending(server: FakeHeadrace, tmp_path: Path) -> None:
    run(ORPHAN, server, tmp_path / "outbox")
    with Headrace(server.url, "key", outbox=tmp_path / "outbox") as client:
        assert client.flush()
    assert sorted(server.event_names()) == ["orphan", "parent"]


SIGNALS = """
import signal
handled = 0

def handle(*_):
    global handled
    handled += 1
    client.track("signal", {"n": handled})

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
number = 0
while handled < 300:
    number += 1
    client.track_many([{"name": "main", "properties": {"n": number}}] * (1 + number % 2))
signal.setitimer(signal.ITIMER_REAL, 0)
print(number)
assert client.flush()
"""


def test_signal_handler_may_report_while_its_thread_does(
    server: FakeHeadrace, tmp_path: Path
) -> None:
    number = int(run(SIGNALS, server, tmp_path / "outbox"))

    items = server.items()
    signals = {one["properties"]["n"] for one in items if one["name"] == "signal"}
    assert signals >= set(range(1, 301))
    expected = sum(1 + n % 2 for n in range(1, number + 1))
    assert len(items) - len(signals) == expected
    assert sum(count for _, count in server.requests) == len(items)


SIGNAL_WHILE_THE_THREAD_STARTS = """
import signal
signal.signal(signal.SIGALRM, lambda *_: client.track("signal"))
make_thread = threading.Thread

def make_thread_interrupted(*arguments, **options):
    threading.Thread = make_thread
    signal.raise_signal(signal.SIGALRM)
    return make_thread(*arguments, **options)

threading.Thread = make_thread_interrupted
client.track("main")
print([thread.name for thread in threading.enumerate()].count("headrace-sender"))
assert client.flush()
"""


def test_signal_handler_that_reports_while_the_thread_starts_starts_no_second_one(
    server: FakeHeadrace, tmp_path: Path
) -> None:
    """Two threads would send each request twice."""
    printed = run(SIGNAL_WHILE_THE_THREAD_STARTS, server, tmp_path / "outbox")

    assert printed == "1\n"
    assert sorted(server.event_names()) == ["main", "signal"]


def test_processes_may_open_a_new_outbox_at_the_same_time(
    server: FakeHeadrace, tmp_path: Path
) -> None:
    code = f"{BEGIN}client.track(sys.argv[2])\nassert client.flush()\n"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, server.url, str(tmp_path / "outbox")],
            env={**os.environ, "PYTHONPATH": str(CLIENT_SOURCE)},
        )
        for _ in range(6)
    ]
    assert [one.wait(TIMEOUT_S) for one in running] == [0] * 6
    assert len(server.items()) == 6
    assert sum(count for _, count in server.requests) == 6
