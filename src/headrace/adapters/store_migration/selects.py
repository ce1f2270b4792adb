"""The selects of a migration, the same for both stores.

A digest does not depend on the order of rows: a sum of hashes over all columns detects a row that
is missing, duplicated or changed.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from headrace.adapters.store.dialect.ddl import column_list
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.catalog import Kind
from headrace.model.storage import StoredColumn, StoredTable

MINUTE_MS: Final = 60_000

_TIME_MS: Final = "toUnixTimestamp64Milli(time)"
_HASH_INPUTS: Mapping[Kind, str] = {
    Kind.NUMBER: "isNull(`{name}`), ifNull(`{name}`, 0)",  # a hash of null would be null
    Kind.DATETIME: "toUnixTimestamp64Milli(`{name}`)",
}
_IN_RANGE: Final = (
    "website_id = {website:String} "
    "AND time >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') "
    "AND time < fromUnixTimestamp64Milli({until:Int64}, 'UTC')"
)
_IN_PART: Final = "sipHash64(id) % {parts:Int64} = {part:Int64}"


class RowRange(Struct, frozen=True, kw_only=True):
    """Rows of a website from one time up to another, exclusive, in epoch milliseconds.

    A minute with many rows is split into several parts by a hash of the row ids.
    """

    website_id: str
    from_ms: int
    until_ms: int
    parts: int = 1
    part: int = 0

    def parameters(self) -> Mapping[str, object]:
        """Return the values that the statements bind."""
        return {
            "website": self.website_id,
            "from": self.from_ms,
            "until": self.until_ms,
            "parts": self.parts,
            "part": self.part,
        }


def select_day_digests(table: StoredTable) -> str:
    """Select website, day since the epoch, number of rows, checksum and bytes."""
    return (
        f"SELECT website_id, {_time_bucket(MILLISECONDS_PER_DAY)} AS day, {_digest_columns(table)} "  # noqa: S608 - our own names
        f"FROM `{table.name}` GROUP BY website_id, day"
    )


def select_minute_digests(table: StoredTable) -> str:
    """Select minute since the epoch, number of rows, checksum and bytes of a `RowRange`."""
    return (
        f"SELECT {_time_bucket(MINUTE_MS)} AS minute, {_digest_columns(table)} "  # noqa: S608 - our own names
        f"FROM `{table.name}` WHERE {_IN_RANGE} GROUP BY minute ORDER BY minute"
    )


def select_rows(table: StoredTable) -> str:
    """Select all columns of the rows of a `RowRange`. Strings are returned as bytes."""
    return (
        f"SELECT {column_list(table)} FROM `{table.name}` WHERE {_IN_RANGE} AND {_IN_PART} "  # noqa: S608 - our own names
        "SETTINGS output_format_arrow_string_as_string = 0, "
        "output_format_arrow_low_cardinality_as_dictionary = 0, "
        "output_format_arrow_compression_method = 'none'"
    )


def select_ids(source: str) -> str:
    """Select the ids of a `RowRange`, in hexadecimal digits. `source` is SQL for the table."""
    return f"SELECT hex(id) FROM {source} WHERE {_IN_RANGE} AND {_IN_PART}"  # noqa: S608 - our own names


def select_count(table: StoredTable) -> str:
    """Select the number of all rows."""
    return f"SELECT toString(count()) FROM `{table.name}`"  # noqa: S608 - our own name


def _time_bucket(unit_ms: int) -> str:
    return f"toInt64(floor({_TIME_MS} / {unit_ms}))"


def _digest_columns(table: StoredTable) -> str:
    hashed = ", ".join(_hash_input(column) for column in table.columns)
    return (
        f"toString(count()), toString(sum(sipHash64({hashed}))), "
        f"toString(sum(byteSize({column_list(table)})))"
    )


def _hash_input(column: StoredColumn) -> str:
    return _HASH_INPUTS.get(column.kind, "`{name}`").format(name=column.name)
