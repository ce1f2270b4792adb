"""Checks the embedded store, which must be open; nothing may write to it meanwhile."""

import re
from collections.abc import Iterator, Mapping, Sequence

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.table_identity import read_identities, table_directories
from headrace.adapters.store.dialect.ddl import DATABASE, VERSION_TABLE
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.adapters.store.dialect.reports import ExpectedRows, LoadedOffsets, StoreReport
from headrace.adapters.store.dialect.rollup_ddl import count_parts_without_rollup
from headrace.formats.rollup_columns import ROLLUP
from headrace.formats.row_ids import FOREIGN_LOG, log_number, parse_log_offset
from headrace.model.catalog import EVENTS
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.event_log import LOG_START

_BROKEN_PROJECTION = "(BROKEN_PROJECTION)"
"""In the message about a part whose events are intact."""

_REASON = re.compile(r"DB::Exception: (.*?)(?: in data part| \(|$)", re.DOTALL)
_COUNTS = "countIf({0}), toFloat64(sumIf(rows, {0})), toFloat64(sumIf(rows, NOT {0}))".format(
    f"table IN ({', '.join(map(quote_literal, STORAGE_TABLES))})"
)
"""Parts and rows of the tables of events, and rows of the table of versions."""

_LAST_OFFSETS = (
    "SELECT hex(substring(id, 7, 2)) AS log, hex(max(substring(id, 9, 8))) "
    "FROM `{database}`.`{table}` GROUP BY log"
)
"""The last log offset of the rows of each log, from their ids: see `formats.row_ids`."""


_SELECT_IDS = (
    "SELECT hex(id) FROM `{database}`.`{table}` WHERE hex(substring(id, 7, 2)) = '{number}' "
    "AND hex(substring(id, 9, 8)) BETWEEN '{first}' AND '{last}'"
)


def check_store(
    chdb: ChdbInstance,
    *,
    known: LoadedOffsets | None,
    expected: Sequence[ExpectedRows],
    identities: Mapping[str, str] | None = None,
) -> StoreReport:
    """Check all parts, the log offsets of all rows, and that the expected rows exist.

    No row may come from an offset that the ledger has not reached. `identities` are those of the
    tables that the ledger has loaded into. Reads everything. Without a ledger (`known` is None)
    offsets and expected rows are not checked. A store into which nothing was loaded may lack
    tables: its first start was interrupted, and the next one creates them.
    """
    table_engines = {
        str(name): kind for name, kind in chdb.execute(_select("name, engine", "tables"))
    }
    existing = [name for name, kind in table_engines.items() if kind != "View"]
    ((parts, rows, other_rows),) = chdb.execute(_select(_COUNTS, "parts", "active"))
    issues = list(_replaced_tables(chdb, identities or {}))
    if rows or other_rows or (known is not None and known.stored_until):
        issues += _missing_tables(existing)
    issues += _broken_parts(chdb)
    for table in existing:
        issues += _damaged_parts(chdb, table)
    notes = tuple(_missing_rollups(chdb, table_engines))  # after the checks, which mark them
    for table in STORAGE_TABLES:
        if table in existing and known is not None:
            issues += _unknown_rows(chdb, table, known)
    for wanted in expected:
        if wanted.table in existing and known is not None:
            issues += _missing_rows(chdb, wanted, known)
    return StoreReport(tuple(issues), int(parts), int(rows), notes)


def _select(columns: str, table: str, condition: str = "true") -> str:
    return (
        f"SELECT {columns} FROM system.{table} "  # noqa: S608 - our own names
        f"WHERE database = {quote_literal(DATABASE)} AND {condition}"
    )


def _missing_tables(existing: Sequence[str]) -> Iterator[str]:
    for name in (*STORAGE_TABLES, VERSION_TABLE):
        if name not in existing:
            yield f"the table {name} is missing"


def _broken_parts(chdb: ChdbInstance) -> Iterator[str]:
    condition = "startsWith(reason, 'broken') ORDER BY ALL"
    for table, name in chdb.execute(_select("table, name", "detached_parts", condition)):
        yield f"the part {name} of the table {table} is broken and set aside, with its rows"


def _missing_rollups(chdb: ChdbInstance, existing: Mapping[str, str]) -> Iterator[str]:
    if ROLLUP not in existing:
        yield f"the view {ROLLUP} is missing: the next start creates it"
    ((parts,),) = chdb.execute(count_parts_without_rollup(quote_literal(DATABASE)))
    if parts:
        yield (
            f"the projection {ROLLUP} of the table {EVENTS.name}, which sessions and profiles "
            f"read, is missing or broken in some parts ({parts}): the service rebuilds it from the "
            "events by itself, or `headrace verify --repair` now"
        )


def _replaced_tables(chdb: ChdbInstance, identities: Mapping[str, str]) -> Iterator[str]:
    directories = table_directories(chdb)
    found = read_identities(directories)
    for table in sorted(directories.keys() & identities.keys()):
        if found.get(table) != identities[table]:
            yield (
                f"the table {table} is not the one that the ledger has loaded into: the next start "
                "loads its events again from the logs"
            )


def _damaged_parts(chdb: ChdbInstance, table: str) -> Iterator[str]:
    try:
        rows = chdb.execute(f"CHECK TABLE `{DATABASE}`.`{table}`")
    except ClickHouseError as failure:
        yield f"the table {table} cannot be checked: {_error_reason(failure.message)}"
        return
    for part, is_intact, message in rows:
        if not is_intact and _BROKEN_PROJECTION not in str(message):
            yield f"the part {part} of the table {table} is damaged: {_error_reason(str(message))}"


def _error_reason(message: str) -> str:
    found = _REASON.search(message)
    return found[1] if found else message


def _unknown_rows(chdb: ChdbInstance, table: str, known: LoadedOffsets) -> Iterator[str]:
    numbers = {log_number(known.identity, log): log for log in known.stored_until}
    try:
        rows = chdb.execute(_LAST_OFFSETS.format(database=DATABASE, table=table))
    except ClickHouseError:
        return  # a damaged part, which `_damaged_parts` has reported
    for number_hex, offset_hex in rows:
        number, offset = int(number_hex, 16), parse_log_offset(bytes.fromhex(offset_hex))
        if number == FOREIGN_LOG or offset <= known.imported.get(number, LOG_START):
            continue
        log = numbers.get(number)
        if log is None or offset >= known.stored_until[log]:
            yield (
                f"the table {table} has rows that the ledger does not know of, from "
                f"{f'the log {log}' if log else 'a log that it does not know of either'}: store "
                "and ledger are not of the same moment"
            )


def _missing_rows(chdb: ChdbInstance, wanted: ExpectedRows, known: LoadedOffsets) -> Iterator[str]:
    number = f"{log_number(known.identity, wanted.log):04X}"
    offset_hexes = sorted(row_id[8:].hex().upper() for row_id in wanted.ids)
    try:
        rows = chdb.execute(
            _SELECT_IDS.format(
                database=DATABASE,
                table=wanted.table,
                number=number,
                first=offset_hexes[0],
                last=offset_hexes[-1],
            )
        )
    except ClickHouseError:
        return  # a damaged part, which `_damaged_parts` has reported
    missing = wanted.ids - {bytes.fromhex(found) for (found,) in rows}
    if missing:
        yield (
            f"the table {wanted.table} lacks {len(missing)} of {len(wanted.ids)} rows that the "
            f"ledger has noted as stored and that are still in the log {wanted.log}"
        )
