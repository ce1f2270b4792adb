"""The JSON of quarantined entries: their files, and objects for commands and over HTTP."""

from collections.abc import Mapping

from msgspec import Raw, Struct
from msgspec.structs import asdict

from headrace.base.datetime_text import format_iso
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import StoredEntry


class EntryObject(Struct, frozen=True):
    """A quarantined entry. A record that cannot be decoded has no stream and no website."""

    id: str
    set_aside: str
    stream: str | None
    website: str | None
    reason: str


class EntryContentObject(EntryObject, frozen=True):
    """A quarantined entry with what its file has."""

    content: Raw


class RetriedEntryObject(EntryObject, frozen=True):
    """An entry that was requeued, and is in the quarantine no more."""

    retried: bool


class EntryFile(Struct, frozen=True):
    """What the file of an entry has: `item` for a decoded item, `payload` for a record as it was.

    `digest` is that of the item or payload as it was rejected, whatever an operator changes in it.
    """

    log: str
    position: LogOffset
    reason: str
    stream: str | None = None
    index: int | None = None
    item: Mapping[str, Raw] | None = None
    payload: bytes | None = None
    digest: str = ""


def entry_object(stored: StoredEntry) -> EntryObject:
    """Return the JSON object of an entry."""
    return EntryObject(
        id=stored.id,
        set_aside=format_iso(stored.quarantined_ms),
        stream=stored.entry.stream,
        website=stored.website_id,
        reason=stored.entry.reason,
    )


def entry_with_content_object(stored: StoredEntry) -> EntryContentObject:
    """Return the JSON object of an entry with what its file has."""
    content = Raw(stored.text)
    return EntryContentObject(**asdict(entry_object(stored)), content=content)


def retried_entry_object(stored: StoredEntry) -> RetriedEntryObject:
    """Return the JSON object of an entry that was requeued, and is in the quarantine no more."""
    return RetriedEntryObject(**asdict(entry_object(stored)), retried=True)
