"""The receipt of an erasure, as the command line and the API show it."""

from typing import Any, Final

from headrace.base.clock import utc_datetime
from headrace.ports.rows.erasure import Erasure

QUARANTINE: Final = "quarantine"
"""The name of the quarantine beside those of the tables, in the counts of rows."""

_BACKUPS: Final = (
    "Backups from before the erasure contain the rows. Restore them with the erasures of this data "
    "directory: `headrace restore` then erases the rows again."
)
_COPIES: Final = "Exports, and other copies outside of the data directory, are not changed."
_TEXTS: Final = (
    "The erasure compared columns: the identifier may still occur within texts of other rows, such "
    "as URLs, titles, messages and properties."
)
_SERVERS: Final = (
    "ClickHouse servers may keep the rows in their backups and in detached parts, and values of "
    "filters in their logs (system.query_log, system.text_log). Machines that do not "
    "share this directory keep them in their event logs until their segments are full."
)

_UNUSED_STORE: Final = (
    "The folder store/ has the rows from before the migration to ClickHouse, and nothing uses it: "
    "delete it. A migration back into it erases the rows again."
)


def receipt(erasure: Erasure) -> dict[str, Any]:
    """Return the receipt. It does not contain the identifier."""
    subject = erasure.subjects[0].digest if erasure.subjects else ""
    return {
        "id": erasure.id,
        "state": "done" if erasure.is_done else "pending",
        "requested": _time(erasure.requested_ms),
        "answersClean": _time(erasure.answers_clean_ms),
        "done": _time(erasure.done_ms),
        "by": erasure.by,
        "website": erasure.website_id,
        "selector": erasure.kind.value,
        "subject": f"hmac-sha256:{subject}" if subject else None,
        "rows": dict(erasure.rows),
        "byHand": list(erasure.by_hand),
        "lastError": erasure.last_error or None,
    }


def rows_to_erase(erasure: Erasure) -> dict[str, Any]:
    """Return what a dry run found: the rows that an erasure would erase now."""
    return {"dryRun": True, "rows": dict(erasure.rows)}


def describe_what_remains(
    *, damaged_files: int, detached_parts: int | None, has_unused_store: bool
) -> tuple[str, ...]:
    """Return what remains to be done by hand. `detached_parts` is None on ClickHouse servers."""
    remains = [_BACKUPS, _COPIES, _TEXTS]
    if has_unused_store:
        remains.append(_UNUSED_STORE)
    if damaged_files:
        remains.append(
            f"The folder damaged/ has {damaged_files} files with damaged bytes of the event log, "
            "which may contain the rows: delete those that you do not need."
        )
    if detached_parts is None:
        remains.append(_SERVERS)
    elif detached_parts:
        remains.append(
            f"The store has {detached_parts} detached parts, set aside as damaged, which may "
            "contain the rows: delete the folders detached/ within store/."
        )
    return tuple(remains)


def describe_gone_machine(machine_id: str, seen: str) -> str:
    """Return what remains to be done where a machine has not erased and runs no more."""
    return (
        f"The machine {machine_id} was seen last at {seen} and has not erased: its data directory "
        "may contain the rows. It erases them when it is started again."
    )


def _time(at_ms: int) -> str | None:
    if not at_ms:
        return None
    return utc_datetime(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
