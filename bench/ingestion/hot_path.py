"""Measures the worker's CPU per event against the minimum for a Python server.

Run: .venv/bin/python -m bench.ingestion.hot_path [--pairs N] [--seconds S] [--folder DIR]
[--beside SRC]

Needs Debian's `wrk`, and `perf` (as root) for --syscalls. The service and
`bench.baselines.python_server` (Y1) are driven in turn with single events, with single events whose
request heads are all different, and with batches of 100. CPU is the user and system time of the
process per event. With --beside a second service runs the sources of another checkout, to measure
the effect of a change. Values are medians; ratios are medians of the ratios within a turn, with
minimum and maximum.
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

from bench.baselines.servers import Server, bare_python
from bench.ingestion.cpu_cost import BATCH_CONNECTIONS, SINGLE_CONNECTIONS
from bench.load.bodies import BATCH, batch_bodies, single_bodies
from bench.load.processes import measure_usage, wait_until_idle
from bench.load.target import run_target
from bench.load.wrk import Load, check_wrk, run_wrk

_SYSCALLS_SHOWN = 0.005
_TRACE_STARTS_S = 1.0


class Workload(NamedTuple):
    """A kind of load."""

    name: str
    load: Load
    events_per_request: int = 1


class Turn(NamedTuple):
    """One turn of one server: CPU in µs per event."""

    cpu_us: float
    user_us: float
    per_s: float


class Contender(NamedTuple):
    """A server, and the processes that must be idle before the next server's turn."""

    name: str
    server: Server
    pids: Sequence[int]


def workloads(seconds: int) -> tuple[Workload, Workload, Workload]:
    """Return the loads, with the bodies of `bench.ingestion.cpu_cost`."""
    single = Load(tuple(single_bodies()), SINGLE_CONNECTIONS, seconds)
    fresh = Load(single.bodies, SINGLE_CONNECTIONS, seconds, has_fresh_heads=True)
    batch = Load(tuple(batch_bodies()), BATCH_CONNECTIONS, seconds)
    return (
        Workload("single", single),
        Workload("new heads", fresh),
        Workload("batch of 100", batch, BATCH),
    )


@contextmanager
def run_contenders(folder: Path, beside: Path | None) -> Generator[Sequence[Contender]]:
    """Run the bare server, the service of another checkout if given, and the service."""
    services: dict[str, Mapping[str, str]] = {"worker": {}}
    if beside is not None:
        services = {"beside": {"PYTHONPATH": str(beside.resolve())}, **services}
    with ExitStack() as stack:
        bare = stack.enter_context(bare_python())
        contenders = [Contender("bare", bare, bare.pids)]
        for name, settings in services.items():
            target = stack.enter_context(run_target(folder, settings=settings, name=name))
            contenders.append(Contender(name, target.server, target.pids))
        yield contenders


def run_turn(contender: Contender, workload: Workload, folder: Path) -> Turn:
    """Drive a server for some seconds."""
    with measure_usage(contender.server.pids) as usage:
        result = run_wrk(
            contender.server.url,
            workload.load,
            folder,
            authorization=contender.server.authorization,
        )
    wait_until_idle(contender.pids)
    events = result.requests * workload.events_per_request
    return Turn(
        cpu_us=usage.cpu_s * 1e6 / events,
        user_us=usage.user_s * 1e6 / events,
        per_s=result.per_s * workload.events_per_request,
    )


def compare(workload: Workload, contenders: Sequence[Contender], pairs: int, folder: Path) -> None:
    """Drive all servers in turn and print the cost of each relative to the bare one."""
    rounds = [
        [run_turn(contender, workload, folder) for contender in contenders] for _ in range(pairs)
    ]
    bare = [turns[0] for turns in rounds]
    for contender, turns in zip(contenders, zip(*rounds, strict=True), strict=True):
        medians = Turn(*(median(column) for column in zip(*turns, strict=True)))
        ratios = [
            turn.cpu_us / bare_turn.cpu_us for turn, bare_turn in zip(turns, bare, strict=True)
        ]
        print(
            f"{workload.name:13} {contender.name:7} "
            f"{medians.cpu_us:7.2f} µs (user {medians.user_us:6.2f}) "
            f"{medians.per_s:9.0f}/s  "
            f"x {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


def count_syscalls(contender: Contender, workload: Workload, folder: Path) -> None:
    """Print the system calls of a server per request, from perf's tracepoints."""
    written = folder / "calls"
    (pid,) = contender.server.pids
    trace = subprocess.Popen(["perf", "trace", "-s", "-p", str(pid), "-o", str(written)])
    time.sleep(_TRACE_STARTS_S)
    result = run_wrk(
        contender.server.url, workload.load, folder, authorization=contender.server.authorization
    )
    trace.send_signal(signal.SIGINT)
    trace.wait()
    print(f"system calls a request, {workload.name}:")
    for name, count in _read_counts(written.read_text()).most_common():
        if count / result.requests > _SYSCALLS_SHOWN:
            print(f"  {name:16} {count / result.requests:.3f}")


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
        run_contenders(Path(name), options.beside) as servers,
    ):
        for workload in workloads(options.seconds):
            compare(workload, servers, options.pairs, Path(name))
            if options.syscalls:
                count_syscalls(servers[-1], workload, Path(name))


if __name__ == "__main__":
    main()
