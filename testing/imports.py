"""Decodes lines as an import does, and returns the rows that the loader makes of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.adapters.memory.store import MemoryStore, Row
from headrace.formats.arrow_batch import write_stream
from headrace.ingest.imports.decoder import ChunkDecoder
from headrace.ingest.imports.formats import make_decoder
from headrace.ingest.imports.importer import make_record
from headrace.ingest.load.batch import group_by_kind
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.columns import TABLE_MAPPINGS
from headrace.ingest.load.deduplicate import deduplicate
from headrace.model.imports import (
    DecodedChunk,
    ImportFormat,
    ImportItem,
    ImportRequest,
    LineChunk,
)
from headrace.model.log_records import (
    EventKind,
    Visitor,
    decode_record,
    encode_record,
)
from headrace.model.storage import STORAGE_TABLES
from headrace.model.tenancy import WebsiteId
from headrace.ports.event_log import LoggedRecord, LogOffset

WEBSITE = WebsiteId("web_a")
NOW_MS = 1_768_500_000_000
"""2026-01-15T18:00:00Z."""

SAMPLES = Path(__file__).parent.parent / "tests" / "fixtures" / "imports"


def find_visitor(address: str, user_agent: str) -> Visitor:
    """Return a visitor from Canada for any address, and a bot for Googlebot."""
    return Visitor(country="CA" if address else "", is_bot="Googlebot" in user_agent)


def decoder_of(
    import_format: ImportFormat,
    kind: EventKind = EventKind.EVENTS,
    *,
    salt: bytes = b"salt",
    **options: Any,
) -> ChunkDecoder:
    """Return the decoder of a format."""
    request = ImportRequest(format=import_format, website_id=WEBSITE, event_kind=kind, **options)
    return make_decoder(request, find_visitor, salt=salt)


def decode_sample(import_format: ImportFormat, name: str) -> DecodedChunk:
    """Decode a sample file as one chunk."""
    lines = (SAMPLES / name).read_bytes().split(b"\n")[:-1]
    return decoder_of(import_format).decode(LineChunk(name, 1, lines), now_ms=NOW_MS)


def rows_of(items: Sequence[ImportItem], kind: EventKind = EventKind.EVENTS) -> list[Row]:
    """Return the stored rows of items, in order, without missing values."""
    content = decode_record(encode_record(make_record(kind, items, NOW_MS)))
    logged = LoggedRecord(b"", LogOffset(1, 30), LogOffset(1, 500))
    records = [ReadRecord("import", logged, NOW_MS, content)]
    batch = group_by_kind(records, deduplicate(records, lambda _: {}), identity="ledger")[kind]
    mapping, store = TABLE_MAPPINGS[kind], MemoryStore()
    arrow = write_stream(STORAGE_TABLES[mapping.table.name], mapping.columns(batch))
    store.insert(mapping.table, arrow, token="")
    return [_present(row) for row in store.rows[mapping.table.name]]


def refusals(chunk: DecodedChunk) -> dict[int, str]:
    """Return the reasons of the refused lines by their numbers."""
    return {refused.line: refused.reason for refused in chunk.refused}


def _present(row: Row) -> Row:
    return {
        name: value for name, value in row.items() if value not in {None, "", b"", bytes(8), False}
    }
