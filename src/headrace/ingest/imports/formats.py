"""The decoder of each format."""

from headrace.ingest.imports.access_log import AccessLogDecoder
from headrace.ingest.imports.decoder import ChunkDecoder
from headrace.ingest.imports.exported_rows import ExportedRowDecoder
from headrace.ingest.imports.hosted_products import MAPPINGS
from headrace.ingest.imports.json_events import JsonEventDecoder
from headrace.ingest.imports.umami import UmamiDecoder
from headrace.ingest.imports.visitors import FindVisitor
from headrace.model.imports import ImportFormat, ImportRequest


def make_decoder(request: ImportRequest, find_visitor: FindVisitor, *, salt: bytes) -> ChunkDecoder:
    """Return the decoder of an import.

    `find_visitor` and `salt` are for formats with addresses; the salt makes visitor ids, and must
    be a new one for each import.
    """
    website_id = request.website_id
    if request.format in MAPPINGS:
        return JsonEventDecoder(MAPPINGS[request.format](find_visitor), website_id)
    if request.format is ImportFormat.ACCESS_LOG:
        return AccessLogDecoder(
            website_id, find_visitor, salt=salt, takes_assets=request.takes_assets
        )
    if request.format is ImportFormat.UMAMI:
        return UmamiDecoder(website_id)
    return ExportedRowDecoder(request.event_kind, website_id)
