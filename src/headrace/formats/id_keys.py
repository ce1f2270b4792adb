"""Keys of ids: numbers that represent the texts of visitors and sessions.

Ids are counted and grouped by their keys, which are shorter to read than texts and need not be
hashed. The store computes those of events when rows are inserted (ADR 49).
"""

from collections.abc import Mapping
from typing import Final

KEY_TYPE: Final = "UInt128"
"""The type of a key in ClickHouse."""

NO_KEY: Final = "0"
"""SQL for the key of rows without such an id."""


def hash128(id_expr: str) -> str:
    """Return SQL for the 128-bit hash of an id, which represents the id.

    ClickHouse relies on hashes of the same size where it counts distinct texts exactly.
    """
    return f"reinterpretAsUInt128(sipHash128({id_expr}))"


EMPTY_ID_HASH: Final = hash128("''")
"""The hash of an empty id."""

ID_KEYS: Mapping[str, str] = {"anonymous_id": "visitor_key", "session_id": "session_key"}
"""The columns of `events` with the keys of ids, by the column of the ids."""


def key_of(id_expr: str) -> str:
    """Return SQL for the key of an id: its hash, or `NO_KEY` for an empty one."""
    return f"if(notEquals({id_expr}, ''), {hash128(id_expr)}, to{KEY_TYPE}({NO_KEY}))"
