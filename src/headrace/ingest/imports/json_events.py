"""Decodes files with a JSON object for each event of another product."""

from collections.abc import Mapping
from typing import Any

from headrace.ingest.imports.decoder import decode_lines, decode_object
from headrace.ingest.imports.mapped_events import MapEvent, to_item
from headrace.model.imports import DecodedChunk, ImportItem, LineChunk


class JsonEventDecoder:
    """Maps each line with one mapping. Empty lines are skipped."""

    def __init__(self, map_event: MapEvent, website_id: str) -> None:
        self._map_event = map_event
        self._website_id = website_id

    def decode(self, chunk: LineChunk, *, now_ms: int) -> DecodedChunk:
        """Return the items of a chunk; see `ChunkDecoder`."""
        return decode_lines(chunk, lambda line: self._item(line, now_ms))

    def _item(self, line: bytes, now_ms: int) -> ImportItem | None:
        if not line or line.isspace():
            return None
        event: Mapping[str, Any] = decode_object(line)
        return to_item(self._map_event(event), self._website_id, now_ms=now_ms)
