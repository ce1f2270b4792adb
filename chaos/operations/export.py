"""An export in progress: complete with the rows of its watermark, each once, or visibly cut off."""

import http.client
import json
import time
from collections import Counter

from chaos.fault import GuaranteeViolated
from chaos.operations.operation import Attempts, OperationContext
from chaos.service import HOST, RESPONSE_TIMEOUT_S

_SHOWN_IDS = 20
_POLL_S = 0.1


class EventExport:
    """Exports all events of the website until an export is complete, and compares its rows."""

    def __init__(self, context: OperationContext) -> None:
        self._context = context
        self._acknowledged: set[str] = set()
        self._exported: Counter[str] = Counter()
        self._attempts = Attempts(
            self._export, what="an export", timeout_s=context.service.recovery_timeout_s
        )

    def begin(self) -> bool:
        """Begin the first export."""
        self._attempts.start()
        return True

    def finish(self) -> None:
        """Wait for a complete export. Raises `GuaranteeViolated` where its rows are wrong."""
        self._attempts.join()
        journal = self._context.traffic.journal
        wrong = {
            "missing": (self._acknowledged & journal.acknowledged("events"))
            - self._exported.keys(),
            "doubled": {event_id for event_id, rows in self._exported.items() if rows > 1},
            "never sent": self._never_sent(),
        }
        problem = "; ".join(
            f"an export has {len(ids)} events {name}: {', '.join(sorted(ids)[:_SHOWN_IDS])}"
            for name, ids in wrong.items()
            if ids
        )
        if problem:
            raise GuaranteeViolated(problem)

    def abandon(self) -> None:
        """End the attempts."""
        self._attempts.abandon()

    def _export(self) -> bool:
        acknowledged = self._context.traffic.journal.acknowledged("events")
        lines = self._read()
        if lines is None:
            return False
        self._acknowledged = acknowledged
        self._exported = Counter(json.loads(line)["anonymous_id"] for line in lines.splitlines())
        return True

    def _never_sent(self) -> set[str]:
        """Return the exported events that no sender knows, when all have their responses.

        The response to a stored event may still be on its way while the event is exported.
        """
        deadline = time.monotonic() + RESPONSE_TIMEOUT_S
        while unknown := self._exported.keys() - self._context.traffic.journal.ids("events"):
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
        return unknown

    def _read(self) -> bytes | None:
        """Return the lines of an export, or None where it was refused or cut off."""
        account = self._context.traffic.account
        path = f"/v1/export?website_id={account.website}&table=events&format=ndjson"
        connection = http.client.HTTPConnection(
            HOST, self._context.service.port, timeout=RESPONSE_TIMEOUT_S
        )
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {account.key}"})
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return content if response.status == 200 else None
