"""Reads the address of the configured store."""

from headrace.adapters.store.clickhouse.address import ClickHouseAddress, parse_address
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, environment_name
from headrace.ports.store import CHDB_DIALECT, SERVER_DIALECT, Dialect
from headrace.wiring.server_urls import check_readable, read_server_url


def clickhouse_address(settings: Settings) -> ClickHouseAddress | None:
    """Return the ClickHouse that rows are inserted into, or None for the embedded store.

    Raises `OperatorError` for an invalid URL.
    """
    url = read_server_url(settings, "clickhouse_url")
    return parse_address(url) if url else None


def clickhouse_reader_address(settings: Settings) -> ClickHouseAddress | None:
    """Return the ClickHouse for queries, or None if no setting names one. Raises as above."""
    url = read_server_url(settings, "clickhouse_reader_url")
    return parse_address(url) if url else None


def store_dialect(settings: Settings) -> Dialect:
    """Return the SQL dialect of the store that the settings name. Raises `OperatorError`."""
    return CHDB_DIALECT if clickhouse_address(settings) is None else SERVER_DIALECT


def check_store_settings(settings: Settings) -> None:
    """Check that both URLs are valid and name the same store. Raises `OperatorError`."""
    written, read = clickhouse_address(settings), clickhouse_reader_address(settings)
    for address, setting in ((written, "clickhouse_url"), (read, "clickhouse_reader_url")):
        if address is not None and address.ca_file:
            check_readable(address.ca_file, named_by=environment_name(setting))
    if read is None:
        return
    if written is None:
        raise OperatorError(
            "HEADRACE_CLICKHOUSE_READER_URL is set without HEADRACE_CLICKHOUSE_URL, the URL that "
            "events are stored at"
        )
    if (read.database, read.cluster) != (written.database, written.cluster):
        raise OperatorError(
            "HEADRACE_CLICKHOUSE_URL and HEADRACE_CLICKHOUSE_READER_URL name different stores"
        )
