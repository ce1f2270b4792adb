"""What the worker spends on an event, next to the least that a Python server can spend on it.

Run: .venv/bin/python -m bench.hot_path [--pairs N] [--seconds S] [--folder DIR] [--beside SRC]
Needs Debian's `wrk`, and `perf` (as root) for --syscalls. The service and `bench.bare_server` (Y1)
are driven in turns with single events, with single events of which each has a head that was never
seen, and with batches of 100. CPU is user and system time of the process for one event. With
--beside a second service runs the sources of another checkout, to compare what a change is worth.
Figures are medians; ratios are medians of the ratios within a turn, with the least and the most.
"""

import argparse
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.bodies import BATCH, batch_bodies, single_bodies
from bench.ingestion import BATCH_CONNECTIONS, SINGLE_CONNECTIONS
from bench.processes import spending, wait_until_quiet
from bench.subject import subject
from bench.wrk import Load, check_wrk, drive
from bench.yardsticks import Server, bare_python

_SYSCALLS_SHOWN = 0.005
_TRACE_STARTS_S = 1.0


class Kind(NamedTuple):
    """A kind of load."""

    name: str
    load: Load
    events_a_request: int = 1


class Turn(NamedTuple):
    """One turn of one server: CPU in µs for one event."""

    cpu_us: float
    user_us: float
    per_s: float


class Rival(NamedTuple):
    """A server, and the processes that have to come to rest before the next one's turn."""

    name: str
    server: Server
    pids: Sequence[int]


def kinds(seconds: int) -> tuple[Kind, Kind, Kind]:
    """Return the loads: the same bodies as `bench.ingestion` sends."""
    single = Load(tuple(single_bodies()), SINGLE_CONNECTIONS, seconds)
    fresh = Load(single.bodies, SINGLE_CONNECTIONS, seconds, has_fresh_heads=True)
    batch = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, seconds)
    return (
        Kind("single", single),
        Kind("new heads", fresh),
        Kind("batch of 100", batch, BATCH),
    )


@contextmanager
def rivals(folder: Path, beside: Path | None) -> Generator[Sequence[Rival]]:
    """Run the bare server, the service of another checkout if there is one, and the service."""
    services: dict[str, Mapping[str, str]] = {"worker": {}}
    if beside is not None:
        services = {"beside": {"PYTHONPATH": str(beside.resolve())}, **services}
    with ExitStack() as opened:
        bare = opened.enter_context(bare_python())
        found = [Rival("bare", bare, bare.pids)]
        for name, settings in services.items():
            ours = opened.enter_context(subject(folder, settings=settings, name=name))
            found.append(Rival(name, ours.server, ours.pids))
        yield found


def play(rival: Rival, kind: Kind, folder: Path) -> Turn:
    """Drive a server for some seconds."""
    with spending(rival.server.pids) as spent:
        driven = drive(
            rival.server.url, kind.load, folder, authorization=rival.server.authorization
        )
    wait_until_quiet(rival.pids)
    events = driven.requests * kind.events_a_request
    return Turn(
        cpu_us=spent.cpu_s * 1e6 / events,
        user_us=spent.user_s * 1e6 / events,
        per_s=driven.per_s * kind.events_a_request,
    )


def compare(kind: Kind, all_rivals: Sequence[Rival], pairs: int, folder: Path) -> None:
    """Drive all servers in turns and print what each spends, next to the bare one."""
    rounds = [[play(rival, kind, folder) for rival in all_rivals] for _ in range(pairs)]
    bare = [turns[0] for turns in rounds]
    for rival, turns in zip(all_rivals, zip(*rounds, strict=True), strict=True):
        middle = Turn(*(median(column) for column in zip(*turns, strict=True)))
        ratios = [turn.cpu_us / least.cpu_us for turn, least in zip(turns, bare, strict=True)]
        print(
            f"{kind.name:13} {rival.name:7} {middle.cpu_us:7.2f} µs (user {middle.user_us:6.2f}) "
            f"{middle.per_s:9.0f}/s  "
            f"x {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def count_syscalls(rival: Rival, kind: Kind, folder: Path) -> None:
    """Print which system calls a server makes for one request, by perf's tracepoints."""
    written = folder / "calls"
    (pid,) = rival.server.pids
    trace = subprocess.Popen(["perf", "trace", "-s", "-p", str(pid), "-o", str(written)])
    time.sleep(_TRACE_STARTS_S)
    driven = drive(rival.server.url, kind.load, folder, authorization=rival.server.authorization)
    trace.send_signal(signal.SIGINT)
    trace.wait()
    print(f"system calls a request, {kind.name}:")
    for name, count in _read_counts(written.read_text()).most_common():
        if count / driven.requests > _SYSCALLS_SHOWN:
            print(f"  {name:16} {count / driven.requests:.3f}")


def _read_counts(summary: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for words in map(str.split, summary.splitlines()):
        if len(words) >= 7 and words[1].isdecimal() and words[2].isdecimal():
            counts[words[0]] += int(words[1])
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="where the data directories are made")
    parser.add_argument("--beside", type=Path, help="the src folder of another checkout")
    parser.add_argument("--syscalls", action="store_true")
    options = parser.parse_args()
    check_wrk()
    with (
        tempfile.TemporaryDirectory(prefix="hot-path-", dir=options.folder) as name,
        rivals(Path(name), options.beside) as servers,
    ):
        for kind in kinds(options.seconds):
            compare(kind, servers, options.pairs, Path(name))
            if options.syscalls:
                count_syscalls(servers[-1], kind, Path(name))


if __name__ == "__main__":
    main()
