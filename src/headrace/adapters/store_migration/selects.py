"""What a copy of a store asks both stores, in the same words.

Figures of rows do not depend on their order: a sum of hashes over all columns tells a row that is
missing, doubled or changed.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from headrace.adapters.store.dialect.ddl import column_list
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.catalog import Kind
from headrace.model.storage import StoredColumn, StoredTable

MINUTE_MS: Final = 60_000

_MOMENT: Final = "toUnixTimestamp64Milli(time)"
_HASHED: Mapping[Kind, str] = {
    Kind.NUMBER: "isNull(`{name}`), ifNull(`{name}`, 0)",  # a hash of null would be null
    Kind.DATETIME: "toUnixTimestamp64Milli(`{name}`)",
}
_WITHIN: Final = (
    "website_id = {website:String} "
    "AND time >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') "
    "AND time < fromUnixTimestamp64Milli({until:Int64}, 'UTC')"
)
_PART: Final = "sipHash64(id) % {parts:Int64} = {part:Int64}"


class Stretch(Struct, frozen=True, kw_only=True):
    """Rows of a website from a moment up to another, in epoch milliseconds.

    Of many rows within a minute it may be one of several parts, told apart by a hash of their ids.
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


def figures_of_days(table: StoredTable) -> str:
    """Select website, day since the epoch, number of rows, checksum and bytes."""
    return (
        f"SELECT website_id, {_numbered(MILLISECONDS_PER_DAY)} AS day, {_figures(table)} "  # noqa: S608 - our own names
        f"FROM `{table.name}` GROUP BY website_id, day"
    )


def figures_of_minutes(table: StoredTable) -> str:
    """Select minute since the epoch, number of rows, checksum and bytes of a `Stretch`."""
    return (
        f"SELECT {_numbered(MINUTE_MS)} AS minute, {_figures(table)} "  # noqa: S608 - our own names
        f"FROM `{table.name}` WHERE {_WITHIN} GROUP BY minute ORDER BY minute"
    )


def rows_of(table: StoredTable) -> str:
    """Select all columns of the rows of a `Stretch`. All texts come as bytes."""
    return (
        f"SELECT {column_list(table)} FROM `{table.name}` WHERE {_WITHIN} AND {_PART} "  # noqa: S608 - our own names
        "SETTINGS output_format_arrow_string_as_string = 0, "
        "output_format_arrow_low_cardinality_as_dictionary = 0, "
        "output_format_arrow_compression_method = 'none'"
    )


def ids_of(place: str) -> str:
    """Select the ids of a `Stretch`, in hexadecimal digits. `place` is SQL for the table."""
    return f"SELECT hex(id) FROM {place} WHERE {_WITHIN} AND {_PART}"  # noqa: S608 - our own names


def count_of(table: StoredTable) -> str:
    """Select the number of all rows."""
    return f"SELECT toString(count()) FROM `{table.name}`"  # noqa: S608 - our own name


def _numbered(unit_ms: int) -> str:
    return f"toInt64(floor({_MOMENT} / {unit_ms}))"


def _figures(table: StoredTable) -> str:
    hashed = ", ".join(_hashed(column) for column in table.columns)
    return (
        f"toString(count()), toString(sum(sipHash64({hashed}))), "
        f"toString(sum(byteSize({column_list(table)})))"
    )


def _hashed(column: StoredColumn) -> str:
    return _HASHED.get(column.kind, "`{name}`").format(name=column.name)
