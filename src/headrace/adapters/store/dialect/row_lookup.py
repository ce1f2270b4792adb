"""The statements that find rows of one website by time and id."""

from typing import Final

from headrace.model.catalog import Table
from headrace.model.plan import CompiledQuery

_ROWS: Final = (
    "FROM `{table}` WHERE website_id = {{website:String}} "
    "AND time >= fromUnixTimestamp64Milli({{first:Int64}}, 'UTC') "
    "AND time <= fromUnixTimestamp64Milli({{last:Int64}}, 'UTC')"
)
_COUNT: Final = f"SELECT count() {_ROWS}"
_IDS: Final = f"SELECT lower(hex(id)) {_ROWS}"
_WANTED: Final = " AND id IN (SELECT toFixedString(unhex(arrayJoin({{ids:Array(String)}})), 16))"


def count_between(table: Table, website_id: str, first_ms: int, last_ms: int) -> CompiledQuery:
    """Return the statement that counts the rows between two times, both included."""
    return _compiled(_COUNT.format(table=table.name), website_id, first_ms, last_ms)


def ids_between(table: Table, website_id: str, first_ms: int, last_ms: int) -> CompiledQuery:
    """Return the statement that selects the ids of all rows between two times, as hex digits."""
    return _compiled(_IDS.format(table=table.name), website_id, first_ms, last_ms)


def wanted_ids_between(
    table: Table, website_id: str, first_ms: int, last_ms: int, ids: list[str]
) -> CompiledQuery:
    """Return the statement that selects those of some ids that rows between two times have."""
    sql = (_IDS + _WANTED).format(table=table.name)
    return _compiled(sql, website_id, first_ms, last_ms, ids=ids)


def _compiled(
    sql: str, website_id: str, first_ms: int, last_ms: int, **more: object
) -> CompiledQuery:
    parameters = {"website": website_id, "first": first_ms, "last": last_ms, **more}
    return CompiledQuery(sql, parameters, (), website_id)
