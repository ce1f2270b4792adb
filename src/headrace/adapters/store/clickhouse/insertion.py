"""The statement that inserts a batch: it takes effect before its deadline, or never.

A server whose process or machine was stopped executes a request when it continues, however long the
client has been gone. The deadline bounds that by the server's own clock. An insert that has begun
before it ends by `max_execution_time`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.adapters.store.dialect.ddl import column_type
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.model.storage import StoredTable

MAX_EXECUTION_SHARE: Final = 0.5
"""Of the client's timeout. A server may take longer by half before it ends a statement."""

_QUORUM_SHARE: Final = 0.25
_MILLISECONDS_PER_SECOND: Final = 1000
_KEEPER_RETRIES: Final = 5  # 3 s in all; the server's default of 20 exceeds any timeout

HUNG_HOST_SETTINGS: Final[Mapping[str, Any]] = {
    "handshake_timeout_ms": 3_000,
    "connections_with_failover_max_tries": 2,
}
"""How long servers wait for a host that accepts connections and does not respond.

The defaults, three times 10 s, are all the time that a statement has: no batch would be stored
until the host is back.
"""

_SETTINGS: Final[Mapping[str, Any]] = {
    **HUNG_HOST_SETTINGS,
    "async_insert": 0,  # on by default: the response would precede the fsync of the rows
    "insert_deduplicate": 1,
    "deduplicate_insert_select": "enable_even_for_bad_queries",  # else it may be switched off
    "insert_keeper_max_retries": _KEEPER_RETRIES,
    "input_format_null_as_default": 0,
    "input_format_arrow_allow_missing_columns": 0,
    "max_insert_threads": 1,  # a batch is one part
}


def insert_settings(*, read_timeout_s: float, quorum: int) -> dict[str, Any]:
    """Return the settings of an insert whose client waits for `read_timeout_s`."""
    settings = {**_SETTINGS, "max_execution_time": read_timeout_s * MAX_EXECUTION_SHARE}
    if quorum:
        settings["insert_quorum"] = quorum
        settings["insert_quorum_timeout"] = int(
            read_timeout_s * _QUORUM_SHARE * _MILLISECONDS_PER_SECOND
        )
    return settings


def insert_target(
    database: str, table: StoredTable, columns: Sequence[str], *, deadline_ms: int
) -> str:
    """Return what stands between INSERT INTO and FORMAT.

    `deadline_ms` is a time of the server's clock, in epoch milliseconds.
    """
    types = {column.name: column_type(column) for column in table.columns}
    structure = ", ".join(f"`{column}` {types[column]}" for column in columns)
    names = ", ".join(f"`{column}`" for column in columns)
    return (
        f"`{database}`.`{table.name}` ({names}) SELECT {names} "  # noqa: S608 - our own names
        f"FROM input({quote_literal(structure)}) WHERE NOT throwIf("
        f"now64(3) > fromUnixTimestamp64Milli({deadline_ms}), 'the insert is past its deadline')"
    )
