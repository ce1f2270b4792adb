"""The JSON objects of quarantined entries: the same for commands and over HTTP."""

from typing import Any

import msgspec

from headrace.base.datetime_text import format_iso
from headrace.ports.quarantine import StoredEntry

JsonObject = dict[str, Any]


def entry_object(stored: StoredEntry) -> JsonObject:
    """Return the JSON object of an entry. A record that cannot be decoded has no website."""
    return {
        "id": stored.id,
        "set_aside": format_iso(stored.quarantined_ms),
        "stream": stored.entry.stream,
        "website": stored.website_id,
        "reason": stored.entry.reason,
    }


def entry_with_content_object(stored: StoredEntry) -> JsonObject:
    """Return the JSON object of an entry with what its file has."""
    return {**entry_object(stored), "content": msgspec.Raw(stored.text)}


def retried_entry_object(stored: StoredEntry) -> JsonObject:
    """Return the JSON object of an entry that was requeued, and is in the quarantine no more."""
    return {**entry_object(stored), "retried": True}
