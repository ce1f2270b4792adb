"""Which store the settings name."""

from headrace.adapters.store.clickhouse.address import ClickHouseAddress, parse_address
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings
from headrace.ports.store import CHDB_DIALECT, SERVER_DIALECT, Dialect
from headrace.wiring.server_urls import read_server_url


def clickhouse_address(settings: Settings) -> ClickHouseAddress | None:
    """Return where rows are written; None where the store is the embedded one.

    Raises `OperatorError` when the settings cannot be understood.
    """
    url = read_server_url(settings, "clickhouse_url")
    return parse_address(url) if url else None


def clickhouse_reader_address(settings: Settings) -> ClickHouseAddress | None:
    """Return what queries are sent to; None where no setting names it. Raises as above."""
    url = read_server_url(settings, "clickhouse_reader_url")
    return parse_address(url) if url else None


def store_dialect(settings: Settings) -> Dialect:
    """Return the SQL dialect of the store that the settings name. Raises `OperatorError`."""
    return CHDB_DIALECT if clickhouse_address(settings) is None else SERVER_DIALECT


def check_store_settings(settings: Settings) -> None:
    """Read the URLs of the store. Raises `OperatorError`."""
    written, read = clickhouse_address(settings), clickhouse_reader_address(settings)
    if read is None:
        return
    if written is None:
        raise OperatorError(
            "HEADRACE_CLICKHOUSE_READER_URL needs HEADRACE_CLICKHOUSE_URL, which is where rows go"
        )
    if (read.database, read.cluster) != (written.database, written.cluster):
        raise OperatorError(
            "HEADRACE_CLICKHOUSE_URL and HEADRACE_CLICKHOUSE_READER_URL name different stores"
        )
