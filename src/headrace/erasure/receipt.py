"""The receipt of an erasure, as the command line and the API show it."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from headrace.base.datetime_text import format_iso
from headrace.model.erasure import SelectorKind
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


class ErasureReceipt(Struct, frozen=True, rename="camel"):
    """The receipt of an erasure. It does not contain the identifier.

    Times are ISO 8601 in UTC, null for what has not happened yet.
    """

    id: str
    state: Literal["pending", "done"]
    requested: str
    answers_clean: str | None
    done: str | None
    by: str
    website: str
    selector: SelectorKind
    subject: str | None
    rows: Mapping[str, int]
    by_hand: tuple[str, ...]
    last_error: str | None


class ErasureDryRun(Struct, frozen=True, rename="camel"):
    """The rows that an erasure would erase now."""

    dry_run: bool
    rows: Mapping[str, int]


def receipt(erasure: Erasure) -> ErasureReceipt:
    """Return the receipt. It does not contain the identifier."""
    subject = erasure.subjects[0].digest if erasure.subjects else ""
    return ErasureReceipt(
        id=erasure.id,
        state="done" if erasure.is_done else "pending",
        requested=format_iso(erasure.requested_ms),
        answers_clean=_time_or_none(erasure.answers_clean_ms),
        done=_time_or_none(erasure.done_ms),
        by=erasure.by,
        website=erasure.website_id,
        selector=erasure.kind,
        subject=f"hmac-sha256:{subject}" if subject else None,
        rows=dict(erasure.rows),
        by_hand=erasure.by_hand,
        last_error=erasure.last_error or None,
    )


def rows_to_erase(erasure: Erasure) -> ErasureDryRun:
    """Return what a dry run found: the rows that an erasure would erase now."""
    return ErasureDryRun(dry_run=True, rows=dict(erasure.rows))


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


def describe_gone_machine(machine_id: str, seen: str | None) -> str:
    """Return what remains to be done where a machine has not erased and runs no more.

    `seen` is when it was seen last, None for a machine that was forgotten.
    """
    state = "was forgotten" if seen is None else f"was seen last at {seen}"
    return (
        f"The machine {machine_id} {state} and has not erased: its data directory may contain the "
        "rows. It erases them when it is started again."
    )


def _time_or_none(at_ms: int) -> str | None:
    return format_iso(at_ms) if at_ms else None
