"""Bare chDB: a connection as an experienced ClickHouse user would use it.

Generates the data sets and is the baseline of queries and inserts. No other process may have the
directory open, and the process must not fork afterwards.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from headrace.adapters.store.dialect.ddl import DATABASE

ROWS_FORMAT = "JSONCompactEachRow"
_ROWS: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[Any])
_QUERY_SETTINGS = "output_format_json_quote_64bit_integers = 0, session_timezone = 'UTC'"
_ARROW_SETTINGS = (
    "output_format_arrow_string_as_string = 1, "
    "output_format_arrow_low_cardinality_as_dictionary = 0"
)


class _Result(Protocol):
    def bytes(self) -> bytes: ...


class _Inserter(Protocol):
    def append(self, data: bytes) -> None: ...
    def finish(self) -> object: ...


class _Connection(Protocol):
    """The used part of chDB's connection, which is only partly typed."""

    def query(
        self,
        query: str,
        format: str,  # noqa: A002
        params: Mapping[str, str] | None = None,
    ) -> _Result: ...
    def send_insert(self, query: str, format: str) -> _Inserter: ...  # noqa: A002
    def close(self) -> None: ...


class BareChdb:
    """A connection to a store's directory. Only one thread at a time may use it."""

    def __init__(self, store: Path, database: str = DATABASE) -> None:
        from chdb.state.sqlitelike import Connection  # noqa: PLC0415 - 200 MB, where it is used

        self._connection = cast("_Connection", Connection(str(store.absolute())))
        self.query(f"USE `{database}`")
        self.query(f"SET {_QUERY_SETTINGS}, {_ARROW_SETTINGS}")

    def query(self, sql: str) -> list[list[Any]]:
        """Run a statement and return its rows."""
        return _ROWS.decode_lines(self.query_bytes(sql))

    def query_bytes(self, sql: str) -> bytes:
        """Run a statement and return its rows as chDB encodes them."""
        return self._connection.query(sql, ROWS_FORMAT).bytes()

    def query_arrow(self, sql: str) -> bytes:
        """Run a statement and return its rows as an Arrow IPC stream."""
        return self._connection.query(sql, "ArrowStream").bytes()

    def insert(self, statement: str, arrow_stream: bytes) -> None:
        """Run an INSERT with the rows of an Arrow IPC stream."""
        inserter = self._connection.send_insert(statement, "ArrowStream")
        inserter.append(arrow_stream)
        inserter.finish()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
