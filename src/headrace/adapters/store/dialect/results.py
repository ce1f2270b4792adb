"""The format of query results, and the limits and settings of every select."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from headrace.ports.store import StoreResult

MAX_RESULT_BYTES: Final = 134_217_728
"""10,000 rows of 13 kB: the engine process and the worker each keep a result in memory."""


RESULT_FORMAT: Final = "JSONCompact"
"""It also has what a select has read. One that changes nothing but rows has no output at all."""


READER_SETTINGS: Final[Mapping[str, str]] = {
    "output_format_json_quote_64bit_integers": "0",
    "output_format_json_quote_denormals": "0",  # NaN and infinity become null
    "output_format_json_quote_decimals": "0",
    "output_format_json_validate_utf8": "1",
    "session_timezone": "UTC",
    "totals_mode": "before_having",
    "max_result_bytes": str(MAX_RESULT_BYTES),
    # No spilling to disk: a query is limited by memory and must not fill the disk of the events.
    "max_bytes_ratio_before_external_group_by": "0",
    "max_bytes_ratio_before_external_sort": "0",
    # The rollup rows of a list of keys are spread over all granules, so an index analysis for IN
    # costs time and excludes nothing (43 instead of 35 ms).
    "use_index_for_in_with_subqueries": "0",
    # Queries name the projection they read. Trying projections for the others costs 3 ms each.
    "optimize_use_projections": "0",
}
"""The format and the limits of every result, of chDB and of servers."""


class _Statistics(Struct, frozen=True):
    rows_read: int
    bytes_read: int


class _Document(Struct, frozen=True):
    data: list[Any]
    statistics: _Statistics
    totals: list[Any] | None = None


_DOCUMENT: msgspec.json.Decoder[_Document] = msgspec.json.Decoder(_Document)


_DATA_BEGINS = b'"data":\n\t[\n'


def _decode(result: bytes) -> _Document:
    """Decode a result.

    Of a statement WITH TOTALS without rows chDB 4.4 writes the end of the rows and the totals
    before everything else.
    """
    misplaced, brace, document = result.partition(b'{\n\t"meta"')
    if misplaced:
        document = (brace + document).replace(_DATA_BEGINS, _DATA_BEGINS + misplaced, 1)
        return _DOCUMENT.decode(document)
    return _DOCUMENT.decode(result)


def decode_rows(result: bytes) -> list[list[Any]]:
    """Return the rows of a result in `RESULT_FORMAT`; a statement without output has none."""
    return _decode(result).data if result else []


def decode_result(result: bytes, *, cached: bool = False) -> StoreResult:
    """Return a result in `RESULT_FORMAT`, and what was read for it: nothing for a cached one."""
    document = _decode(result)
    statistics = _Statistics(0, 0) if cached else document.statistics
    return StoreResult(
        document.data,
        totals=document.totals,
        rows_read=statistics.rows_read,
        bytes_read=statistics.bytes_read,
        cached=cached,
    )
