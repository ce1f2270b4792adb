"""Which store the settings name."""

from headrace.adapters.store.clickhouse.address import ClickHouseAddress, parse_address
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, secret_text


def clickhouse_of(settings: Settings) -> ClickHouseAddress | None:
    """Return where rows are written; None where the store is the embedded one.

    Raises `OperatorError` when the settings cannot be understood.
    """
    url = secret_text(settings, "store")
    return parse_address(url) if url else None


def reading_clickhouse_of(settings: Settings) -> ClickHouseAddress | None:
    """Return what queries are sent to; None where no setting names it. Raises as above."""
    url = secret_text(settings, "store_reader")
    return parse_address(url) if url else None


def check_store_settings(settings: Settings) -> None:
    """Read the URLs of the store. Raises `OperatorError`."""
    written, read = clickhouse_of(settings), reading_clickhouse_of(settings)
    if read is None:
        return
    if written is None:
        raise OperatorError("HEADRACE_STORE_READER needs HEADRACE_STORE, which is where rows go")
    if (read.database, read.cluster) != (written.database, written.cluster):
        raise OperatorError("HEADRACE_STORE and HEADRACE_STORE_READER name different stores")
