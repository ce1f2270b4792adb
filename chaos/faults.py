"""Faults: each one breaks the service under load."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from chaos.disk import DataDisk
from chaos.load import Traffic
from chaos.query_client import QueryClient
from chaos.service import RecoveryTimeout, Service, free_port
from chaos.torn_tails import damage_tails, read_markers, restore_markers

_TIMEOUT_S = 30.0


class GuaranteeViolated(Exception):
    """The service violated a guarantee that does not concern a single event."""


class FaultContext(NamedTuple):
    """The objects that a fault acts on."""

    service: Service
    query_client: QueryClient
    traffic: Traffic
    disk: DataDisk
    random: Random


class Fault(NamedTuple):
    """A kind of fault. `inject` returns when the fault is over and recovery may begin."""

    name: str
    inject: Callable[[FaultContext], None]
    weight: int = 2
    needs_own_disk: bool = False


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_worker(context: FaultContext) -> None:
    _kill(context.service.pick_child("worker", context.random.choice))


def _kill_engine(context: FaultContext) -> None:
    _kill(context.service.pick_child("engine", context.random.choice))


def _kill_supervisor(context: FaultContext) -> None:
    context.service.process.kill()
    context.service.process.wait()


def _kill_everything(context: FaultContext) -> None:
    context.service.kill_everything()


def _kill_during_start(context: FaultContext) -> None:
    context.service.kill_everything()
    context.service.launch()
    time.sleep(context.random.uniform(0, 1.8))
    context.service.kill_everything()


def _kill_during_shutdown(context: FaultContext) -> None:
    context.service.process.terminate()
    time.sleep(context.random.uniform(0, 0.6))
    context.service.kill_everything()


def _stop_cleanly(context: FaultContext) -> None:
    context.service.process.terminate()
    try:
        code = context.service.process.wait(_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise GuaranteeViolated(
            f"SIGTERM did not end the service within {_TIMEOUT_S:.0f} s"
        ) from error
    if code != 0:
        raise GuaranteeViolated(f"SIGTERM ended the service with exit code {code}")


def _kill_first_start(context: FaultContext) -> None:
    """Kill a new service while it creates its tables, then require that it starts."""
    folder = context.service.log.with_name("new")
    folder.mkdir()
    service = Service(folder / "data", log=folder / "service.log", port=free_port())
    for _ in range(2):
        service.launch()
        time.sleep(context.random.uniform(0.2, 1.8))
        service.kill_everything()
    try:
        service.wait_for_recovery()
    except RecoveryTimeout as error:
        raise GuaranteeViolated(f"after kills in its first start: {error}; see {folder}") from error
    service.kill_everything()
    shutil.rmtree(folder)


def _kill_at_segment_change(context: FaultContext) -> None:
    """Kill a worker as soon as a new segment of its log appears."""
    log = context.disk.data / "log"
    before = set(log.glob("*/*.segment"))
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        new = set(log.glob("*/*.segment")) - before
        if new:
            name = new.pop().parent.name
            for pid in context.service.children("worker"):
                if _index(pid) == name.removeprefix("worker-"):
                    _kill(pid)
            return


def _index(pid: int) -> str:
    with suppress(OSError):
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return arguments[arguments.index("--index") + 1]
    return ""


def _kill_engine_in_load(context: FaultContext) -> None:
    """Kill the engine process shortly after a query makes it load all pending records."""
    pid = context.service.pick_child("engine", context.random.choice)
    query_thread = threading.Thread(target=_query_counts, args=(context,))
    query_thread.start()
    time.sleep(context.random.uniform(0, 0.06))
    _kill(pid)
    query_thread.join()


def _query_counts(context: FaultContext) -> None:
    with suppress(RecoveryTimeout):
        context.query_client.counts("events")


def _damage_tail(context: FaultContext) -> None:
    """Kill all processes and damage the bytes behind the durable offset of each log."""
    markers = read_markers(context.disk.data) if context.random.random() < 0.3 else {}
    time.sleep(0.2)
    context.service.kill_everything()
    before = _size(context.service.log)
    cut = damage_tails(context.disk.data, context.random)
    restore_markers(markers)
    context.service.wait_for_recovery()
    text = _text_behind(context.service.log, before)
    for log in cut:
        if not any(word in text for word in ("log_tail_cut", "log_damaged")):
            raise GuaranteeViolated(f"the damaged tail of {log} was not reported")


def _size(path: Path) -> int:
    return path.stat().st_size


def _text_behind(path: Path, size: int) -> str:
    with path.open("rb") as file:
        file.seek(size)
        return file.read().decode(errors="replace")


def _fill_disk(context: FaultContext) -> None:
    with _freed_afterwards(context.disk.fill()):
        time.sleep(context.random.uniform(0.3, 1.5))


def _fill_store_disk(context: FaultContext) -> None:
    with _freed_afterwards(context.disk.fill_store()), _require_ingestion(context):
        time.sleep(context.random.uniform(0.5, 1.5))


def _stall_store(context: FaultContext) -> None:
    pid = context.service.pick_child("engine", context.random.choice)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        with _require_ingestion(context):
            time.sleep(context.random.uniform(0.5, 2.5))
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def _freed_afterwards(filled: Path) -> Generator[None]:
    try:
        yield
    finally:
        DataDisk.free_space(filled)


@contextmanager
def _require_ingestion(context: FaultContext) -> Generator[None]:
    before = context.traffic.acknowledged_requests
    yield
    deadline = time.monotonic() + _TIMEOUT_S
    while context.traffic.acknowledged_requests == before:
        if time.monotonic() > deadline:
            raise GuaranteeViolated("nothing was acknowledged while the store was away")
        time.sleep(0.05)


FAULTS: Mapping[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault("kill a worker", _kill_worker),
        Fault("kill a worker at a segment change", _kill_at_segment_change),
        Fault("kill the engine", _kill_engine),
        Fault("kill the engine in a load", _kill_engine_in_load),
        Fault("kill the supervisor", _kill_supervisor),
        Fault("kill everything", _kill_everything),
        Fault("kill everything during the start", _kill_during_start),
        Fault("kill everything during SIGTERM", _kill_during_shutdown),
        Fault("kill a new service in its first start", _kill_first_start, weight=1),
        Fault("SIGTERM", _stop_cleanly, weight=1),
        Fault("kill everything, damage the log's tail", _damage_tail),
        Fault("fill the disk", _fill_disk, needs_own_disk=True),
        Fault("fill the disk of the store", _fill_store_disk, needs_own_disk=True),
        Fault("stall the store", _stall_store),
    )
}


def choose_fault(random: Random, *, can_be_full: bool) -> Fault:
    """Choose a random fault from those that are possible with this disk."""
    possible = [fault for fault in FAULTS.values() if can_be_full or not fault.needs_own_disk]
    return random.choices(possible, [fault.weight for fault in possible])[0]
