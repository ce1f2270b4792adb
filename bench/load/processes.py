"""Resource usage of processes, from /proc: CPU time, memory, and whether they are idle."""

import os
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

from testing.service import Service

_TICKS = os.sysconf("SC_CLK_TCK")
_POLL_INTERVAL_S = 0.5
_IDLE_CPU_SHARE = 0.04
_IDLE_POLLS = 2


class ResourceUsage:
    """CPU time of a block: `cpu_s` in total, `user_s` of it outside system calls."""

    cpu_s: float = 0.0
    user_s: float = 0.0
    wall_s: float = 0.0


def pids_of(service: Service) -> tuple[int, ...]:
    """Return the process ids of a service: the supervisor and all its children."""
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
    return (service.pid, *map(int, children))


def cpu_s(pids: Iterable[int]) -> float:
    """Return user and system time of processes and their threads, with a resolution of 10 ms."""
    return sum(map(sum, map(_cpu_ticks, pids))) / _TICKS


def user_s(pids: Iterable[int]) -> float:
    """Return only the user time of processes; see `cpu_s`."""
    return sum(_cpu_ticks(pid)[0] for pid in pids) / _TICKS


def _cpu_ticks(pid: int) -> tuple[int, int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


@contextmanager
def measure_usage(pids: Sequence[int]) -> Generator[ResourceUsage]:
    """Measure the CPU time of processes in a block."""
    usage, cpu_before_s, user_before_s = ResourceUsage(), cpu_s(pids), user_s(pids)
    started_s = time.perf_counter()
    yield usage
    usage.wall_s = time.perf_counter() - started_s
    usage.cpu_s = cpu_s(pids) - cpu_before_s
    usage.user_s = user_s(pids) - user_before_s


def memory_mb(pids: Iterable[int]) -> float:
    """Return the memory of processes as PSS: shared pages are counted once."""
    return sum(_rollup_kib(pid, "Pss:") for pid in pids) * 1024 / 1e6


def anonymous_mb(pids: Iterable[int]) -> float:
    """Return the anonymous memory, which the system cannot reclaim as page cache."""
    return sum(_rollup_kib(pid, "Pss_Anon:") for pid in pids) * 1024 / 1e6


def peak_memory_mb(pid: int) -> float:
    """Return the most memory that a process has had, with all pages of files that it maps."""
    return _kib(Path(f"/proc/{pid}/status"), "VmHWM:") * 1024 / 1e6


def _rollup_kib(pid: int, field: str) -> int:
    return _kib(Path(f"/proc/{pid}/smaps_rollup"), field)


def _kib(file: Path, field: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise AssertionError(f"{file} has no {field}")


def wait_until_idle(pids: Sequence[int], *, timeout_s: float = 60.0) -> None:
    """Wait until processes are idle, so that their deferred work is complete."""
    deadline_s, idle_polls = time.monotonic() + timeout_s, 0
    while idle_polls < _IDLE_POLLS and time.monotonic() < deadline_s:
        before_s = cpu_s(pids)
        time.sleep(_POLL_INTERVAL_S)
        idle_polls = (
            idle_polls + 1 if cpu_s(pids) - before_s < _IDLE_CPU_SHARE * _POLL_INTERVAL_S else 0
        )
