"""Faults: each one breaks the service under load."""

import errno
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from chaos.disk import Capability, DataDisk
from chaos.fault import Fault, FaultContext, GuaranteeViolated, require_ingestion
from chaos.powercut.faults import POWER_CUTS
from chaos.replicas.faults import REPLICA_FAULTS
from chaos.service import RecoveryTimeout, Service
from chaos.torn_tails import damage_tails, read_markers, restore_markers
from testing.servers.ports import free_port

_TIMEOUT_S = 30.0


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_worker(context: FaultContext) -> None:
    context.service.kill_child("worker", context.random.choice)


def _kill_engine(context: FaultContext) -> None:
    context.service.kill_child("engine", context.random.choice)


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
    deadline = time.monotonic() + _TIMEOUT_S
    while cut and not _reports_damage(_text_behind(context.service.log, before)):
        if time.monotonic() > deadline:  # one worker is ready while another opens its log
            raise GuaranteeViolated(f"no damaged tail was reported, but those of {cut} are")
        time.sleep(0.05)


def _reports_damage(text: str) -> bool:
    return any(word in text for word in ("log_tail_cut", "log_damaged"))


def _size(path: Path) -> int:
    return path.stat().st_size


def _text_behind(path: Path, size: int) -> str:
    with path.open("rb") as file:
        file.seek(size)
        return file.read().decode(errors="replace")


def _fill_disk(context: FaultContext) -> None:
    with _freed_afterwards(context.disk, context.disk.fill()):
        time.sleep(context.random.uniform(0.3, 1.5))


def _fill_store_disk(context: FaultContext) -> None:
    filled = context.disk.fill_store()
    with _freed_afterwards(context.disk, filled), require_ingestion(context):
        time.sleep(context.random.uniform(0.5, 1.5))


def _stall_store(context: FaultContext) -> None:
    pid = context.service.pick_child("engine", context.random.choice)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        with require_ingestion(context):
            time.sleep(context.random.uniform(0.5, 2.5))
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _restore_old_markers(context: FaultContext) -> None:
    """Kill all processes and restore earlier durable markers, as after a power cut.

    The workers are stopped in their start, so that the engine reads the logs before or while they
    recover them.
    """
    markers = read_markers(context.disk.data)
    time.sleep(context.random.uniform(0.2, 1.5))
    context.service.kill_everything()
    restore_markers(markers)
    context.service.launch()
    stopped = [context.service.pick_child("worker", min), context.service.pick_child("worker", max)]
    time.sleep(context.random.uniform(0, 0.6))
    _signal_all(stopped, signal.SIGSTOP)
    time.sleep(context.random.uniform(0, 1.5))
    _signal_all(stopped, signal.SIGCONT)


def _signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _fail_log_reads(context: FaultContext) -> None:
    """Fail the engine's reads of the logs; require that it is reported and ingestion goes on."""
    with _failing_in_engine(context, "read", errno.EIO, ".segment"), require_ingestion(context):
        deadline = time.monotonic() + _TIMEOUT_S
        while context.service.is_ready():
            if time.monotonic() > deadline:
                raise GuaranteeViolated("/ready was 200 while no log could be read")
            time.sleep(0.05)
        time.sleep(context.random.uniform(0, 1.0))


def _fill_disk_of_ledger(context: FaultContext) -> None:
    with (
        _failing_in_engine(context, "write", errno.ENOSPC, "ledger.sqlite"),
        require_ingestion(context),
    ):
        time.sleep(context.random.uniform(0.3, 1.5))


@contextmanager
def _failing_in_engine(context: FaultContext, call: str, error: int, text: str) -> Generator[None]:
    if context.failing_calls is None:
        raise RuntimeError("the service was started without the library of failing calls")
    pid = context.service.pick_child("engine", context.random.choice)
    with context.failing_calls.failing(pid, call, error, text):
        yield


@contextmanager
def _freed_afterwards(disk: DataDisk, filled: Path) -> Generator[None]:
    try:
        yield
    finally:
        disk.free_space(filled)


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
        Fault(
            "kill a new service in its first start",
            _kill_first_start,
            weight=1,
            needs=Capability.EMBEDDED_STORE,
        ),
        Fault("SIGTERM", _stop_cleanly, weight=1),
        Fault("kill everything, damage the log's tail", _damage_tail, allows_commands=False),
        Fault("fill the disk", _fill_disk, needs=Capability.FULL_DISK),
        Fault("fill the disk of the store", _fill_store_disk, needs=Capability.FULL_STORE),
        Fault("stall the store", _stall_store),
        Fault("kill everything, restore old markers", _restore_old_markers, allows_commands=False),
        Fault(
            "fail the engine's reads of the logs", _fail_log_reads, needs=Capability.FAILING_CALLS
        ),
        Fault("fill the disk of the ledger", _fill_disk_of_ledger, needs=Capability.FAILING_CALLS),
        *POWER_CUTS,
        *REPLICA_FAULTS,
    )
}


def possible_faults(capabilities: Collection[Capability], only: str = "") -> list[Fault]:
    """Return the faults that are possible with such a disk: all of them, or at most one kind."""
    return [
        fault
        for fault in FAULTS.values()
        if (fault.needs is None or fault.needs in capabilities) and only in ("", fault.name)
    ]


def choose_fault(random: Random, possible: Sequence[Fault]) -> Fault:
    """Choose a random fault by weight."""
    return random.choices(possible, [fault.weight for fault in possible])[0]
