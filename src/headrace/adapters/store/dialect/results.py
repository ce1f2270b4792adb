"""The format of query results, and the limits and settings of every select."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

MAX_RESULT_BYTES: Final = 134_217_728
"""10,000 rows of 13 kB: an answer is held in memory by the engine and by the worker."""


RESULT_FORMAT: Final = "JSONCompactEachRow"


READER_SETTINGS: Final[Mapping[str, str]] = {
    "output_format_json_quote_64bit_integers": "0",
    "output_format_json_quote_denormals": "0",  # NaN and infinity are null
    "output_format_json_quote_decimals": "0",
    "output_format_json_validate_utf8": "1",
    "session_timezone": "UTC",
    "max_result_bytes": str(MAX_RESULT_BYTES),
    # The memory guard is the guard: a heavy query must not fill the disk that events need.
    "max_bytes_ratio_before_external_group_by": "0",
    "max_bytes_ratio_before_external_sort": "0",
    # The visits that a list of keys finds are everywhere: to look for them in the index, too, takes
    # time for nothing (43 against 35 ms).
    "use_index_for_in_with_subqueries": "0",
    # Visits are read by name. To see whether other questions could be too takes 3 ms for nothing.
    "optimize_use_projections": "0",
}
"""What answers look like and may take, whichever ClickHouse gives them."""


_ROWS: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[Any])


def decode_rows(result: bytes) -> list[list[Any]]:
    """Read an answer of the engine: a JSON array for each row, one a line."""
    return _ROWS.decode_lines(result)
