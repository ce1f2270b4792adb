"""Results: measurements and their machine, as a readable table and as JSON."""

import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.report.measurements import HEADINGS, Measurement
from headrace.base.clock import SystemClock, utc_datetime

RESULTS = Path(__file__).parents[1] / "results"


class Machine(Struct, frozen=True):
    """The machine of a run. Memory in GiB; `load` is the load average when the run began."""

    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    file_system: str
    load: float

    def line(self) -> str:
        """Return the description in one line."""
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gib:.0f} GiB, {self.system}, "
            f"{self.file_system}, Python {self.python}; load average at the start {self.load:.1f}"
        )


class Results(Struct, frozen=True, rename={"measurements": "figures"}):
    """One run of the benchmark. `commit` ends in "+" if the working tree differed from it."""

    date: str
    commit: str
    machine: Machine
    measurements: tuple[Measurement, ...]


def describe_machine(folder: Path) -> Machine:
    """Describe the machine and the file system of a folder."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=memory / 2**30,
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        python=platform.python_version(),
        file_system=_output("stat", "--file-system", "--format=%T", str(folder)),
        load=os.getloadavg()[0],
    )


def collect(measurements: Iterable[Measurement], machine: Machine) -> Results:
    """Combine measurements with date and commit."""
    changed = _output("git", "status", "--porcelain", "--untracked-files=no")
    commit = _output("git", "rev-parse", "--short", "HEAD") + ("+" if changed else "")
    now = utc_datetime(SystemClock().now_ms())
    return Results(now.strftime("%Y-%m-%dT%H:%M:%SZ"), commit, machine, tuple(measurements))


def write_results(results: Results, path: Path) -> None:
    """Write results as indented JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def read_results(path: Path) -> Results:
    """Read what `write_results` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def print_measurements(measurements: Sequence[Measurement]) -> None:
    """Print a table in columns."""
    rows = [HEADINGS, *(measurement.cells() for measurement in measurements)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    print(_line(HEADINGS, widths))
    for group, members in groupby(measurements, lambda measurement: measurement.group):
        print(f"\n{group}")
        for measurement in members:
            print(_line([cell.replace("**", "") for cell in measurement.cells()], widths))


def print_results(results: Results) -> None:
    """Print all results of a run."""
    print_measurements(results.measurements)
    print(f"\n{results.date}, commit {results.commit}, {results.machine.line()}")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
