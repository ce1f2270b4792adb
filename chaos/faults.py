"""What goes wrong: each fault breaks the service under load and says what it did."""

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

from chaos.load import Traffic
from chaos.place import Place
from chaos.questions import Questions
from chaos.service import NotBack, Service, free_port
from chaos.tails import damage_tails, old_marks, put_back

_PATIENCE_S = 30.0


class Broken(Exception):
    """The service broke a promise that is not about one event."""


class Scene(NamedTuple):
    """What a fault works on."""

    service: Service
    questions: Questions
    traffic: Traffic
    place: Place
    random: Random


class Fault(NamedTuple):
    """A kind of fault. It returns when the fault is over and recovery may begin."""

    name: str
    strike: Callable[[Scene], None]
    weight: int = 2
    needs_own_disk: bool = False


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_worker(scene: Scene) -> None:
    _kill(scene.service.one_of("worker", scene.random.choice))


def _kill_engine(scene: Scene) -> None:
    _kill(scene.service.one_of("engine", scene.random.choice))


def _kill_supervisor(scene: Scene) -> None:
    scene.service.process.kill()
    scene.service.process.wait()


def _kill_everything(scene: Scene) -> None:
    scene.service.kill_everything()


def _kill_during_start(scene: Scene) -> None:
    scene.service.kill_everything()
    scene.service.launch()
    time.sleep(scene.random.uniform(0, 1.8))
    scene.service.kill_everything()


def _kill_during_shutdown(scene: Scene) -> None:
    scene.service.process.terminate()
    time.sleep(scene.random.uniform(0, 0.6))
    scene.service.kill_everything()


def _stop_cleanly(scene: Scene) -> None:
    scene.service.process.terminate()
    try:
        code = scene.service.process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise Broken(f"SIGTERM did not end the service within {_PATIENCE_S:.0f} s") from error
    if code != 0:
        raise Broken(f"SIGTERM ended the service with exit code {code}")


def _kill_first_start(scene: Scene) -> None:
    """Kill a new service while it makes its tables, and hold that it starts afterwards."""
    folder = scene.service.log.with_name("new")
    folder.mkdir()
    service = Service(folder / "data", log=folder / "service.log", port=free_port())
    for _ in range(2):
        service.launch()
        time.sleep(scene.random.uniform(0.2, 1.8))
        service.kill_everything()
    try:
        service.return_to_service()
    except NotBack as error:
        raise Broken(f"after kills in its first start: {error}; see {folder}") from error
    service.kill_everything()
    shutil.rmtree(folder)


def _kill_at_segment_change(scene: Scene) -> None:
    """Kill a worker in the moment in which a new segment of a log appears."""
    log = scene.place.data / "log"
    before = set(log.glob("*/*.segment"))
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        new = set(log.glob("*/*.segment")) - before
        if new:
            name = new.pop().parent.name
            for pid in scene.service.children("worker"):
                if _index(pid) == name.removeprefix("worker-"):
                    _kill(pid)
            return


def _index(pid: int) -> str:
    with suppress(OSError):
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return arguments[arguments.index("--index") + 1]
    return ""


def _kill_engine_in_load(scene: Scene) -> None:
    """Kill the engine just after it was asked to load everything for a query."""
    pid = scene.service.one_of("engine", scene.random.choice)
    asking = threading.Thread(target=_ask, args=(scene,))
    asking.start()
    time.sleep(scene.random.uniform(0, 0.06))
    _kill(pid)
    asking.join()


def _ask(scene: Scene) -> None:
    with suppress(NotBack):
        scene.questions.counts("events")


def _damage_the_tail(scene: Scene) -> None:
    """Kill everything and spoil what lies behind the durable end of each log."""
    marks = old_marks(scene.place.data) if scene.random.random() < 0.3 else {}
    time.sleep(0.2)
    scene.service.kill_everything()
    before = _size(scene.service.log)
    cut = damage_tails(scene.place.data, scene.random)
    put_back(marks)
    scene.service.return_to_service()
    text = _text_behind(scene.service.log, before)
    for log in cut:
        if not any(word in text for word in ("log_tail_cut", "log_damaged")):
            raise Broken(f"the damaged tail of {log} was not reported")


def _size(path: Path) -> int:
    return path.stat().st_size


def _text_behind(path: Path, size: int) -> str:
    with path.open("rb") as file:
        file.seek(size)
        return file.read().decode(errors="replace")


def _fill_disk(scene: Scene) -> None:
    with _room_taken(scene.place.fill()):
        time.sleep(scene.random.uniform(0.3, 1.5))


def _refuse_store(scene: Scene) -> None:
    with _room_taken(scene.place.fill_store()), _ingestion_goes_on(scene):
        time.sleep(scene.random.uniform(0.5, 1.5))


def _stall_store(scene: Scene) -> None:
    pid = scene.service.one_of("engine", scene.random.choice)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        with _ingestion_goes_on(scene):
            time.sleep(scene.random.uniform(0.5, 2.5))
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def _room_taken(filled: Path) -> Generator[None]:
    try:
        yield
    finally:
        Place.make_room(filled)


@contextmanager
def _ingestion_goes_on(scene: Scene) -> Generator[None]:
    before = scene.traffic.acknowledged_requests
    yield
    deadline = time.monotonic() + _PATIENCE_S
    while scene.traffic.acknowledged_requests == before:
        if time.monotonic() > deadline:
            raise Broken("nothing was acknowledged while the store was away")
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
        Fault("kill everything, damage the log's tail", _damage_the_tail),
        Fault("fill the disk", _fill_disk, needs_own_disk=True),
        Fault("fill the disk of the store", _refuse_store, needs_own_disk=True),
        Fault("stall the store", _stall_store),
    )
}


def choose_fault(random: Random, *, can_be_full: bool) -> Fault:
    """Draw one of the faults that are possible here."""
    possible = [fault for fault in FAULTS.values() if can_be_full or not fault.needs_own_disk]
    return random.choices(possible, [fault.weight for fault in possible])[0]
