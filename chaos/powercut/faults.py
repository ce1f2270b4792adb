"""Power cuts as faults: each one at another time."""

import json
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaos.disk import Capability
from chaos.event_journal import Bucket, Fate
from chaos.fault import Fault, FaultContext, GuaranteeViolated
from chaos.load import session_of
from chaos.powercut.recovery import Aftermath, PowerCut
from chaos.service import RecoveryTimeout, Service, send_request
from testing.servers.ports import free_port

_STOP_TIMEOUT_S = 30.0
_MERGE_TIMEOUT_S = 20.0
_BULK_REQUESTS, _BULK_EVENTS = 30, 1000
_LARGE_MERGE_BYTES = 256 * 1024
_QUARANTINED_ENTRIES = 40
_UNFINISHED_RESTORE = "restore-unfinished"


def _cut_power(context: FaultContext) -> None:
    PowerCut(context, aftermath=Aftermath()).inject()


def _cut_power_in_recovery(context: FaultContext) -> None:
    PowerCut(context, aftermath=Aftermath(), again_probability=0.7).inject()


def _cut_power_during_shutdown(context: FaultContext) -> None:
    context.service.process.terminate()
    time.sleep(context.random.uniform(0, 0.6))
    PowerCut(context, aftermath=Aftermath()).inject()


def _cut_power_of_full_disk(context: FaultContext) -> None:
    """Cut the power while the disk is full, and start the service before there is space."""
    filled = context.disk.fill()
    time.sleep(context.random.uniform(0.1, 1.5))

    def free_space() -> None:
        time.sleep(context.random.uniform(0, 1.5))
        context.disk.free_space(filled)

    aftermath = Aftermath(stays_full=True, after_start=free_space)
    PowerCut(context, aftermath=aftermath).inject()


def _cut_power_in_merge(context: FaultContext) -> None:
    """Send so many events that large parts are merged, and cut the power in such a merge."""
    for number in range(_BULK_REQUESTS):
        _send_bulk(context, number)
    deadline = time.monotonic() + _MERGE_TIMEOUT_S
    while not _merges_large_parts(context.disk.data) and time.monotonic() < deadline:
        time.sleep(0.005)
    PowerCut(context, aftermath=Aftermath()).inject()


def _send_bulk(context: FaultContext, number: int) -> None:
    path = f"/{context.number}-bulk"
    ids = [f"{context.number}-bulk-{number}-{index}" for index in range(_BULK_EVENTS)]
    items = [
        {"name": "bulk", "path": path, "anonymousId": one, "sessionId": session_of(one)}
        for one in ids
    ]
    fate = Fate.UNANSWERED
    account = context.traffic.account
    with suppress(OSError):
        response = send_request(
            context.service.port,
            "POST",
            f"/track?client_id={account.website}",
            body=items,
            headers={"Authorization": f"Bearer {account.key}"},
        )
        fate = {200: Fate.ACKNOWLEDGED, 500: Fate.UNANSWERED}.get(response.status, Fate.REFUSED)
    context.traffic.journal.record(Bucket("events", path), ids, fate)


def _merges_large_parts(data: Path) -> bool:
    return any(
        _size(part) >= _LARGE_MERGE_BYTES
        for part in data.glob("store/store/*/*/tmp_merge_*")
        if part.is_dir()
    )


def _size(part: Path) -> int:
    with suppress(OSError):  # the merge is complete
        return sum(file.stat().st_size for file in part.iterdir() if file.is_file())
    return 0


def _cut_power_in_first_start(context: FaultContext) -> None:
    """Cut the power while another, new service creates its tables; it must start afterwards."""
    data = context.disk.data.with_name("new")
    log = context.service.log.with_name("new-service.log")
    service = Service(data, log=log, port=free_port())
    service.launch()
    time.sleep(context.random.uniform(0.2, 2.5))

    def start_new_service() -> None:
        try:
            service.wait_for_recovery()
        except RecoveryTimeout as error:
            raise GuaranteeViolated(f"after a power cut in its first start: {error}") from error
        finally:
            service.kill_everything()

    aftermath = Aftermath(after_recovery=start_new_service)
    PowerCut(context, aftermath=aftermath).inject([service])
    shutil.rmtree(data)


def _cut_power_in_retry(context: FaultContext) -> None:
    """Cut the power while quarantined entries are retried, and retry what is left of them."""
    bucket = Bucket("events", f"/{context.number}-retried")
    ids = [f"{context.number}-retried-{index}" for index in range(_QUARANTINED_ENTRIES)]
    _quarantine(context, bucket, ids)
    context.traffic.journal.record(bucket, ids, Fate.UNANSWERED)
    retry = context.service.launch_command("quarantine", "retry", "--all")
    time.sleep(context.random.uniform(0.2, 2.0))

    def retry_rest() -> None:
        context.service.command("quarantine", "retry", "--all")
        context.traffic.journal.record(bucket, ids, Fate.ACKNOWLEDGED)

    PowerCut(context, aftermath=Aftermath(after_recovery=retry_rest)).inject([retry])


def _quarantine(context: FaultContext, bucket: Bucket, ids: Sequence[str]) -> None:
    """Write entries as the service does for rows that the store rejected."""
    directory = context.disk.data / "quarantine"
    directory.mkdir(exist_ok=True)
    for event_id in ids:
        entry = _entry(context.traffic.account.website, bucket.path, event_id)
        (directory / f"{event_id}.json").write_text(json.dumps(entry))
    context.disk.sync()


def _entry(website: str, path: str, event_id: str) -> dict[str, Any]:
    now_ms = time.time_ns() // 1_000_000
    return {
        "log": "gone",
        "position": {"segment": 1, "offset": 1},
        "reason": "written by the crash test",
        "stream": "events",
        "index": 0,
        "item": {
            "website_id": website,
            "time_ms": now_ms,
            "received_ms": now_ms,
            "name": "retried",
            "path": path,
            "anonymous_id": event_id,
            "session_id": session_of(event_id),
        },
    }


def _cut_power_in_restore(context: FaultContext) -> None:
    """Restore a backup of everything, and cut the power meanwhile or right after it."""
    context.service.process.terminate()
    context.service.process.wait(_STOP_TIMEOUT_S)
    backup = context.service.log.with_name(f"{context.number}.backup")
    context.service.command("backup", str(backup))
    _empty(context)
    restore = context.service.launch_command("restore", str(backup))
    if context.random.random() < 0.3:
        restore.wait(_STOP_TIMEOUT_S)
    else:
        time.sleep(context.random.uniform(0.3, 1.5))

    def restore_again() -> None:
        names = {path.name for path in context.disk.data.iterdir()} - {"lock"}
        is_marked = any(name.startswith(_UNFINISHED_RESTORE) for name in names)
        if restore.returncode != 0 and (not names or is_marked):
            _empty(context)
            context.service.command("restore", str(backup))

    PowerCut(context, aftermath=Aftermath(before_start=restore_again)).inject([restore])
    backup.unlink()


def _empty(context: FaultContext) -> None:
    for path in context.disk.data.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    context.disk.sync()


POWER_CUTS: Sequence[Fault] = tuple(
    Fault(name, inject, weight=weight, needs=Capability.POWER_CUT, allows_commands=False)
    for name, inject, weight in (
        ("cut the power", _cut_power, 12),
        ("cut the power, and again in the recovery", _cut_power_in_recovery, 8),
        ("cut the power of a full disk", _cut_power_of_full_disk, 4),
        ("cut the power in a merge of large parts", _cut_power_in_merge, 4),
        ("cut the power during SIGTERM", _cut_power_during_shutdown, 3),
        ("cut the power in a first start", _cut_power_in_first_start, 3),
        ("cut the power in a retry of the quarantine", _cut_power_in_retry, 3),
        ("cut the power in a restore", _cut_power_in_restore, 3),
    )
)
