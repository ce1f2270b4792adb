"""Commands in progress, which may be killed themselves: an import, and a prune."""

import hashlib
import http.client
import json
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chaos.event_journal import Bucket, Fate
from chaos.fault import GuaranteeViolated
from chaos.load import session_of
from chaos.operations.operation import OperationContext
from chaos.service import send_request

_LINES = 2000
_RETAIN_DAYS = 5
_AGE_OF_EXPIRED = timedelta(days=10)
_KILL_PROBABILITY = 0.3
_EXIT_TAKEN = 0


class RepeatedCommand:
    """A command that is started before a fault, and repeated after it until it succeeds."""

    def __init__(self, context: OperationContext, *arguments: str) -> None:
        self._context = context
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the command; now and then kill it a moment later."""
        self._process = self._context.service.launch_command(*self._arguments)
        if self._context.random.random() < _KILL_PROBABILITY:
            time.sleep(self._context.random.uniform(0.2, 1.5))
            self._process.kill()

    def finish(self) -> None:
        """Repeat the command until it succeeds. Raises `GuaranteeViolated` after the timeout."""
        timeout_s = self._context.service.recovery_timeout_s
        deadline = time.monotonic() + timeout_s
        process = self._process or self._context.service.launch_command(*self._arguments)
        while process.wait(timeout_s) != _EXIT_TAKEN:
            if time.monotonic() > deadline:
                raise GuaranteeViolated(
                    f"headrace {self._arguments[0]} failed for {timeout_s:.0f} s"
                )
            process = self._context.service.launch_command(*self._arguments)

    def abandon(self) -> None:
        """Kill the command."""
        if self._process is not None:
            self._process.kill()


class EventImport:
    """Imports events into the website: each line is stored once, however often it is repeated."""

    def __init__(self, context: OperationContext) -> None:
        self._context = context
        self._bucket = Bucket("events", f"/{context.number}-imported")
        self._ids = [f"{context.number}-imported-{index}" for index in range(_LINES)]
        self._file = context.service.log.with_name(f"{context.number}.ndjson")
        self._command = RepeatedCommand(
            context, *_import_of(self._file, context.traffic.account.website)
        )

    def begin(self) -> bool:
        """Write the file, and begin its import."""
        _write_events(self._file, self._bucket.path, self._ids, datetime.now(UTC))
        self._context.traffic.journal.record(self._bucket, self._ids, Fate.UNANSWERED)
        self._command.start()
        return True

    def finish(self) -> None:
        """Import the rest: from then on every line is stored once."""
        self._command.finish()
        self._context.traffic.journal.record(self._bucket, self._ids, Fate.ACKNOWLEDGED)
        self._file.unlink()

    def abandon(self) -> None:
        """Kill the import."""
        self._command.abandon()


class Prune:
    """Prunes another website: its expired rows are gone for good, the others remain."""

    def __init__(self, context: OperationContext) -> None:
        self._context = context
        self._website = ""
        self._command = RepeatedCommand(context, "prune")
        self._kept = [f"{context.number}-kept-{index}" for index in range(_LINES // 4)]

    def begin(self) -> bool:
        """Import old and new rows, let the old ones expire, and begin to prune."""
        service, number = self._context.service, self._context.number
        self._website = service.command("website", "create", "--name", f"pruned {number}")["id"]
        now = datetime.now(UTC)
        expired = [f"{number}-expired-{index}" for index in range(_LINES // 4)]
        for ids, at in ((self._kept, now), (expired, now - _AGE_OF_EXPIRED)):
            file = service.log.with_name(f"{number}.ndjson")
            _write_events(file, "/", ids, at)
            service.command(*_import_of(file, self._website))
            file.unlink()
        service.command("website", "update", self._website, "--retain-days", str(_RETAIN_DAYS))
        self._command.start()
        return True

    def finish(self) -> None:
        """Prune the rest, keep rows for ever again, and compare what is left."""
        self._command.finish()
        self._context.service.command("website", "update", self._website, "--retain-days", "0")
        deadline = time.monotonic() + self._context.service.recovery_timeout_s
        expected = dict.fromkeys(self._kept, 1)
        while (found := self._stored()) != expected:
            if found is not None or time.monotonic() > deadline:
                raise GuaranteeViolated(
                    f"a pruned website has {len(found or ())} events instead of {len(expected)}"
                )
            time.sleep(0.2)
        self._context.service.command("website", "delete", self._website)

    def abandon(self) -> None:
        """Kill the prune."""
        self._command.abandon()

    def _stored(self) -> dict[str, int] | None:
        """Return the rows of each event of the website, or None where there is no answer."""
        body = {
            "query": {
                "table": "events",
                "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
                "groupBy": ["anonymous_id"],
            },
            "startDate": "2020-01-01",
            "endDate": "2029-12-31",
            "limit": 10_000,
        }
        try:
            response = send_request(
                self._context.service.port,
                "POST",
                f"/v1/query/custom?website_id={self._website}",
                body=body,
                headers={"Authorization": f"Bearer {self._context.traffic.account.key}"},
            )
        except (OSError, http.client.HTTPException):
            return None
        if response.status != 200:
            return None
        return {row["anonymous_id"]: row["n"] for row in response.body["data"]}


def _import_of(file: Path, website: str) -> tuple[str, ...]:
    return ("import", str(file), "--website", website, "--format", "ndjson")


def _row_id(event_id: str, at: datetime) -> str:
    """Return the id of a row as an export has it: it begins with the time of receipt."""
    received_ms = int(at.timestamp() * 1000)
    digest = hashlib.blake2b(event_id.encode(), digest_size=10)
    return received_ms.to_bytes(6, "big").hex() + digest.hexdigest()


def _write_events(file: Path, path: str, ids: Sequence[str], at: datetime) -> None:
    with file.open("w") as lines:
        for event_id in ids:
            event = {
                "id": _row_id(event_id, at),
                "received_at": at.isoformat(timespec="milliseconds"),
                "event_name": "imported",
                "path": path,
                "anonymous_id": event_id,
                "session_id": session_of(event_id),
                "time": at.isoformat(timespec="milliseconds"),
            }
            lines.write(json.dumps(event) + "\n")
