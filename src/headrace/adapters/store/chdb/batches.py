"""Batches of the loader as statements of chDB: inserting one, and finding it afterwards."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from headrace.adapters.store.chdb.connection import ChdbSession
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.formats.arrow_batch import inserted_columns, read_batch_metadata
from headrace.model.storage import StoredTable
from headrace.ports.store import BatchRejected

_NO_SUCH_PART = 232
_CORRUPTED = 246


def insert_statement(table: str, columns: Sequence[str], token: str) -> str:
    """Return the INSERT of a batch with these columns, which ignores a token it has seen."""
    column_list = ", ".join(f"`{column}`" for column in columns)
    return (
        f"INSERT INTO `{table}` ({column_list}) SETTINGS "
        "async_insert = 0, "  # on by default
        "input_format_null_as_default = 0, "
        "input_format_arrow_allow_missing_columns = 0, "
        f"insert_deduplication_token = {quote_literal(token)}"
    )


def has_batch(
    session: ChdbSession, table: StoredTable, row: Mapping[str, object], *, part: str | None = None
) -> bool:
    """Return whether the first row of a batch is stored. A batch is one part: all of it, or none.

    Row ids depend on the log offset alone, so every attempt of a batch has the same ones. `part`
    limits the search to one part. Raises `ClickHouseError` where the part is damaged.
    """
    part_condition = "" if part is None else f"_part = {quote_literal(part)} AND "
    sql = (
        f"SELECT _part FROM `{table.name}` WHERE {part_condition}website_id = {{website:String}} "  # noqa: S608 - our own name
        "AND time = fromUnixTimestamp64Milli({time:Int64}, 'UTC') AND hex(id) = {id:String} LIMIT 1"
    )
    for (found,) in session.execute(sql, row):
        _check_part(session, table, found)
        return True
    return False


def _check_part(session: ChdbSession, table: StoredTable, part: str) -> None:
    """Compare a part with its checksums; a part that was merged meanwhile was intact."""
    check = f"CHECK TABLE `{table.name}` PART {quote_literal(part)}"
    try:
        ((is_intact,),) = session.execute(f"{check} SETTINGS check_query_single_value_result = 1")
    except ClickHouseError as failure:
        if failure.code == _NO_SUCH_PART:
            return
        raise
    if not is_intact:
        raise ClickHouseError(_CORRUPTED, "CORRUPTED_DATA")


class Batch(Struct, frozen=True):
    """The key of a batch's first row, the websites of its rows, and the names of its columns."""

    first_row: Mapping[str, object]
    websites: list[str]
    columns: list[str]


def read_batch(table: StoredTable, arrow_stream: bytes) -> Batch | None:
    """Read a stream's metadata; None for a stream without rows. Raises `BatchRejected`."""
    try:
        metadata = read_batch_metadata(arrow_stream)
        columns = inserted_columns(table, arrow_stream)
    except MemoryError:
        raise  # no fault of the stream
    except Exception as error:  # what arro3 raises has no narrower class
        raise BatchRejected(f"not an Arrow stream of the table: {error}") from error
    if metadata is None:
        return None
    first = metadata.first
    row = {"website": first.website_id, "time": first.time_ms, "id": first.row_id.hex().upper()}
    return Batch(row, sorted(metadata.websites), columns)
