"""Checks that a ClickHouse store has the rows that this machine's logs still contain.

It checks no parts, which is the servers' task, and no rows of other machines.
"""

from collections.abc import Sequence

from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.connection import SyncClient, SyncClientPool, query_rows
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.reports import ExpectedRows, StoreReport
from headrace.base.errors import StoreUnavailable
from headrace.formats.row_ids import log_number
from headrace.model.storage import STORAGE_TABLES

_READ_TIMEOUT_S = 600.0
_ALL_SHARDS = {"skip_unavailable_shards": 0}
_SELECT_IDS = (
    "SELECT hex(id) FROM {source} WHERE hex(substring(id, 7, 2)) = {{number:String}} "
    "AND hex(substring(id, 9, 8)) BETWEEN {{first:String}} AND {{last:String}}"
)


def check_clickhouse(
    address: ClickHouseAddress, *, identity: str, expected: Sequence[ExpectedRows]
) -> StoreReport:
    """Check that the expected rows are stored. `identity` is the ledger's.

    Reads all ids of a table with such rows. A server that does not respond is an issue, too.
    """
    pool = SyncClientPool(address, read_timeout_s=_READ_TIMEOUT_S)
    try:
        return pool.run_on_any(lambda client: _check(client, address, identity, expected))
    except (ClickHouseError, StoreUnavailable) as error:
        return StoreReport((f"cannot query ClickHouse: {error}",), 0, 0)
    finally:
        pool.close()


def _check(
    client: SyncClient,
    address: ClickHouseAddress,
    identity: str,
    expected: Sequence[ExpectedRows],
) -> StoreReport:
    client.database = address.database
    counts = [_count_rows(client, table) for table in STORAGE_TABLES]
    issues = [
        issue for wanted in expected if (issue := _missing_rows(client, address, identity, wanted))
    ]
    return StoreReport(tuple(issues), parts=0, rows=sum(counts))


def _count_rows(client: SyncClient, table: str) -> int:
    ((rows,),) = query_rows(
        client,
        f"SELECT toFloat64(count()) FROM `{table}`",  # noqa: S608 - our own name
        settings=_ALL_SHARDS,
    )
    return int(rows)


def _source(address: ClickHouseAddress, table: str) -> str:
    """Return SQL for FROM: the table on all replicas, because one that is behind lacks rows."""
    if not address.is_replicated:
        return f"`{table}`"
    return f"clusterAllReplicas(`{address.cluster}`, `{address.local_database}`, `{table}`)"


def _missing_rows(
    client: SyncClient, address: ClickHouseAddress, identity: str, wanted: ExpectedRows
) -> str | None:
    offsets = sorted(row_id[8:].hex().upper() for row_id in wanted.ids)
    found = query_rows(
        client,
        _SELECT_IDS.format(source=_source(address, wanted.table)),
        encode_parameters(
            {
                "number": f"{log_number(identity, wanted.log):04X}",
                "first": offsets[0],
                "last": offsets[-1],
            }
        ),
        {"skip_unavailable_shards": int(address.is_replicated)},
    )
    missing = wanted.ids - {bytes.fromhex(row_id) for (row_id,) in found}
    if not missing:
        return None
    return (
        f"the table {wanted.table} lacks {len(missing)} of {len(wanted.ids)} rows that the "
        f"ledger has noted as stored and that are still in the log {wanted.log}"
    )
