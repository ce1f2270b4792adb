"""What the worker spends on a request, next to the least that a Python server can spend on it.

Run: .venv/bin/python -m bench.hot_path [--pairs N] [--seconds S] [--connections N] [--folder DIR]
Needs Debian's `wrk`, and `perf` (as root) for --syscalls. A real `millrace serve --workers 1` with
key authentication and its fsync, and `bench.bare_server`, are driven in turns: single events whose
heads are all the same, single events of which each has a head that was never seen, and batches of
100. CPU is user and system time of the process from /proc. The figures are medians, the
ratio is the median of the ratios of neighbours. "half load" are senders that pause so that about
--half-rate requests a second come; wrk counts a wait from when it sends.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import requests

from tests.e2e.service import Service, free_port, wait_until

EVENT = {
    "name": "purchase_completed",
    "anonymousId": "anon_4f1c9e0a",
    "sessionId": "sess_77aa31",
    "namespace": "checkout",
    "path": "/pricing",
    "properties": {
        "plan": "pro",
        "seats": 3,
        "currency": "EUR",
        "value": 119.5,
        "trial": False,
        "coupon": "AUTUMN",
        "referrer": "https://www.example.com/blog/how-to-count",
    },
}
BATCH = 100
TICKS = os.sysconf("SC_CLK_TCK")
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
{authorization}
wrk.body = {body}
{delay}
{request}
function done(summary, latency)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format(
    'RESULT {{"requests":%d,"seconds":%f,"refused":%d,"broken":%d,"p50":%f,"p99":%f}}\\n',
    summary.requests, summary.duration / 1e6, errors.status, broken,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


FRESH = """
local number = 0
function request()
  number = number + 1
  wrk.headers["X-Number"] = number
  return wrk.format()
end
"""


class Server(NamedTuple):
    """Where requests go, and whose time counts."""

    url: str
    pid: int
    authorization: str = ""


class Turn(NamedTuple):
    """One turn of one server: waits in ms, CPU in µs for one request."""

    requests_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    user_us: float


class Load(NamedTuple):
    """What is sent in one turn; `rate` is about how many a second, 0 as many as there can be.

    `fresh` is for a head of its own for each request.
    """

    body: bytes
    connections: int
    seconds: float
    rate: float = 0
    fresh: bool = False


def cpu_ticks(pid: int) -> tuple[int, int]:
    """Return user and system time of a process, in ticks of the clock."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


def drive(server: Server, load: Load, folder: Path) -> Turn:
    """Send for some seconds, and tell what that took."""
    script = folder / "load.lua"
    script.write_text(lua(server, load))
    command = ["wrk", "-t1", f"-c{load.connections}", f"-d{load.seconds}s", "--latency"]
    before = cpu_ticks(server.pid)
    done = subprocess.run(
        [*command, "-s", str(script), server.url], capture_output=True, text=True, check=True
    )
    user, system = (after - then for after, then in zip(cpu_ticks(server.pid), before, strict=True))
    result = json.loads(done.stdout.rpartition("RESULT ")[2])
    assert (result["refused"], result["broken"]) == (0, 0), done.stdout
    per_request = 1e6 / TICKS / result["requests"]
    return Turn(
        requests_per_s=result["requests"] / result["seconds"],
        p50_ms=result["p50"],
        p99_ms=result["p99"],
        cpu_us=(user + system) * per_request,
        user_us=user * per_request,
    )


def lua(server: Server, load: Load) -> str:
    """Write wrk's script; its senders pause for a time drawn evenly up to twice the mean."""
    pause_ms = 1000 * load.connections / load.rate if load.rate else 0
    return SCRIPT.format(
        authorization=f'wrk.headers["Authorization"] = "{server.authorization}"'
        if server.authorization
        else "",
        body=f"[==[{load.body.decode()}]==]",
        delay=f"function delay() return math.random(0, {round(2 * pause_ms)}) end"
        if pause_ms
        else "",
        request=FRESH if load.fresh else "",
    )


@contextmanager
def bare_server() -> Generator[Server]:
    """Run the bare server."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.bare_server", str(port)])
    url = f"http://127.0.0.1:{port}/track"
    try:
        wait_until(lambda: is_there(url), "the bare server listens")
        yield Server(url, process.pid)
    finally:
        process.terminate()
        process.wait()


def is_there(url: str) -> bool:
    """Tell whether something answers an event with 200."""
    try:
        return requests.post(url, data=b'{"name":"x"}', timeout=5).status_code == 200
    except requests.ConnectionError:
        return False


@contextmanager
def worker(folder: Path) -> Generator[Server]:
    """Run the service with one worker, a website and a key for it."""
    service = Service(folder / "data", workers=1)
    service.start()
    try:
        website = service.website()
        key = service.key("track:events", websites=[website])
        (pid,) = service.child_pids("worker")
        yield Server(f"{service.url}/track", pid, f"Bearer {key.secret}")
        service.stop()
    finally:
        service.kill()


def print_row(name: str, turns: Sequence[Turn]) -> None:
    """Print the medians of some turns."""
    middle = Turn(*(median(column) for column in zip(*turns, strict=True)))
    print(
        f"{name:22} {middle.cpu_us:8.1f} µs  (user {middle.user_us:6.1f})  "
        f"{middle.requests_per_s:9.0f}/s  p50 {middle.p50_ms:6.2f} ms  p99 {middle.p99_ms:6.2f} ms"
    )


def compare(
    name: str, turn_of: Callable[[Server], Turn], pairs: int, both: Sequence[Server]
) -> None:
    """Drive both servers in turns and print what each spends, and the ratio."""
    turns = [[turn_of(server) for server in both] for _ in range(pairs)]
    for server_name, column in zip(("bare", "worker"), zip(*turns, strict=True), strict=True):
        print_row(f"{name} {server_name}", column)
    ratios = sorted(ours.cpu_us / bare.cpu_us for bare, ours in turns)
    print(f"{name} ratio {median(ratios):.2f}  ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


def count_syscalls(server: Server, load: Load, folder: Path) -> None:
    """Print which system calls the server makes for one request, by perf's tracepoints."""
    before = time.monotonic()
    trace = subprocess.Popen(
        ["perf", "trace", "-s", "-p", str(server.pid), "-o", str(folder / "calls")]
    )
    time.sleep(1)
    turn = drive(server, load, folder)
    trace.send_signal(signal.SIGINT)
    trace.wait()
    sent = turn.requests_per_s * load.seconds
    counts: dict[str, int] = {}
    for line in (folder / "calls").read_text().splitlines():
        words = line.split()
        if len(words) >= 7 and words[1].isdecimal() and words[2].isdecimal():
            counts[words[0]] = counts.get(words[0], 0) + int(words[1])
    print(f"system calls a request, {time.monotonic() - before:.0f} s:")
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        if count / sent > 0.005:
            print(f"  {name:16} {count / sent:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--half-rate", type=int, default=6000)
    parser.add_argument("--folder", type=Path, help="where the data directory is made")
    parser.add_argument("--syscalls", action="store_true")
    options = parser.parse_args()
    one = json.dumps(EVENT, separators=(",", ":")).encode()
    many = b"[" + b",".join([one] * BATCH) + b"]"
    single = Load(one, options.connections, options.seconds)
    batch = Load(many, 16, options.seconds)
    half = Load(one, options.connections, options.seconds, rate=options.half_rate)
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as name,
        bare_server() as bare,
        worker(Path(name)) as ours,
    ):
        folder = Path(name)
        for server in (bare, ours):
            drive(server, single._replace(seconds=1), folder)
        fresh = single._replace(fresh=True)
        for title, load in (("single", single), ("new heads", fresh), ("batch of 100", batch)):
            turn_of = partial(drive, load=load, folder=folder)
            compare(title, turn_of, options.pairs, (bare, ours))
        print_row("half load worker", [drive(ours, half, folder) for _ in range(options.pairs)])
        if options.syscalls:
            count_syscalls(ours, single, folder)


if __name__ == "__main__":
    main()
