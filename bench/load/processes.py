"""What processes use, from /proc: CPU seconds, memory, and when they have come to rest."""

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
    """What was spent in a block: `cpu_s` of all processes, `user_s` of it in no system call."""

    cpu_s: float = 0.0
    user_s: float = 0.0
    wall_s: float = 0.0


def pids_of(service: Service) -> tuple[int, ...]:
    """Return the supervisor of a service and all its children."""
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
    return (service.pid, *map(int, children))


def cpu_s(pids: Iterable[int]) -> float:
    """Return the user and system time of processes, their threads included; 10 ms exactly."""
    return sum(map(sum, map(_cpu_ticks, pids))) / _TICKS


def user_s(pids: Iterable[int]) -> float:
    """Return the user time of processes alone; see `cpu_s`."""
    return sum(_cpu_ticks(pid)[0] for pid in pids) / _TICKS


def _cpu_ticks(pid: int) -> tuple[int, int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


@contextmanager
def measure_usage(pids: Sequence[int]) -> Generator[ResourceUsage]:
    """Measure what processes spend in a block."""
    usage, cpu_before_s, user_before_s = ResourceUsage(), cpu_s(pids), user_s(pids)
    started_s = time.perf_counter()
    yield usage
    usage.wall_s = time.perf_counter() - started_s
    usage.cpu_s = cpu_s(pids) - cpu_before_s
    usage.user_s = user_s(pids) - user_before_s


def memory_mb(pids: Iterable[int]) -> float:
    """Return the memory of processes; pages that several share are counted once (PSS)."""
    return sum(_rollup_kib(pid, "Pss:") for pid in pids) * 1024 / 1e6


def anonymous_mb(pids: Iterable[int]) -> float:
    """Return what of the memory is no file's, which the system cannot take back."""
    return sum(_rollup_kib(pid, "Pss_Anon:") for pid in pids) * 1024 / 1e6


def _rollup_kib(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise AssertionError(f"/proc/{pid}/smaps_rollup has no {field}")


def wait_until_idle(pids: Sequence[int], *, timeout_s: float = 60.0) -> None:
    """Return when processes have come to rest: what they had to do afterwards is done then."""
    deadline_s, idle_polls = time.monotonic() + timeout_s, 0
    while idle_polls < _IDLE_POLLS and time.monotonic() < deadline_s:
        before_s = cpu_s(pids)
        time.sleep(_POLL_INTERVAL_S)
        idle_polls = (
            idle_polls + 1 if cpu_s(pids) - before_s < _IDLE_CPU_SHARE * _POLL_INTERVAL_S else 0
        )
