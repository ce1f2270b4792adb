"""Checks the embedded store. It must be open, and nothing may write to it."""

import re
from collections.abc import Iterator, Mapping, Sequence

from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.adapters.store.dialect.ddl import DATABASE, VERSION_TABLE
from headrace.adapters.store.dialect.errors import EngineFailure
from headrace.adapters.store.dialect.parameters import quoted
from headrace.adapters.store.dialect.reports import ExpectedRows, KnownPlaces, StoreReport
from headrace.adapters.store.dialect.rollup_ddl import count_parts_without_visits
from headrace.formats.rollup_columns import VISITS
from headrace.formats.row_ids import log_number
from headrace.model.catalog import EVENTS
from headrace.model.storage import STORED
from headrace.ports.event_log import LogPosition

_REASON = re.compile(r"DB::Exception: (.*?)(?: in data part| \(|$)", re.DOTALL)
_LAST_PLACES = (
    "SELECT hex(substring(id, 7, 2)) AS log, hex(max(substring(id, 9, 8))) "
    "FROM `{database}`.`{table}` GROUP BY log"
)
"""The places that rows come from, out of their ids: see `ingest.batch.row_ids`."""


_IDS = (
    "SELECT hex(id) FROM `{database}`.`{table}` WHERE hex(substring(id, 7, 2)) = '{number}' "
    "AND hex(substring(id, 9, 8)) BETWEEN '{first}' AND '{last}'"
)


def check_store(
    engine: ChdbEngine, *, known: KnownPlaces | None, expected: Sequence[ExpectedRows]
) -> StoreReport:
    """Check all parts, that no row comes from a place that the ledger has not reached, and rows.

    Reads everything. Without a ledger the places are not checked.
    """
    kinds = {str(name): kind for name, kind in engine.execute(_select("name, engine", "tables"))}
    there = [name for name, kind in kinds.items() if kind != "View"]
    faults = [
        f"the table {name} is missing" for name in (*STORED, VERSION_TABLE) if name not in there
    ]
    faults += _lost_visits(engine, kinds)
    faults += _broken_parts(engine)
    for table in there:
        faults += _damaged_parts(engine, table)
    for table in STORED:
        if table in there and known is not None:
            faults += _unknown_rows(engine, table, known)
    for wanted in expected:
        if wanted.table in there and known is not None:
            faults += _missing_rows(engine, wanted, known)
    ((parts, rows),) = engine.execute(_select("count(), toFloat64(sum(rows))", "parts", "active"))
    return StoreReport(tuple(faults), int(parts), int(rows))


def _select(columns: str, table: str, condition: str = "true") -> str:
    return (
        f"SELECT {columns} FROM system.{table} "  # noqa: S608 - our own names
        f"WHERE database = {quoted(DATABASE)} AND {condition}"
    )


def _broken_parts(engine: ChdbEngine) -> Iterator[str]:
    condition = "startsWith(reason, 'broken') ORDER BY ALL"
    for table, name in engine.execute(_select("table, name", "detached_parts", condition)):
        yield f"the part {name} of the table {table} is broken and set aside, with its rows"


def _lost_visits(engine: ChdbEngine, there: Mapping[str, str]) -> Iterator[str]:
    if VISITS not in there:
        yield "the view visits is missing: the next start makes it"
    ((parts,),) = engine.execute(count_parts_without_visits(quoted(DATABASE)))
    if parts:
        yield (
            f"{parts} parts of the table {EVENTS.name} have no whole visits, of which sessions and "
            "profiles are made: the next start makes them"
        )


def _damaged_parts(engine: ChdbEngine, table: str) -> Iterator[str]:
    try:
        rows = engine.execute(f"CHECK TABLE `{DATABASE}`.`{table}`")
    except EngineFailure as failure:
        yield f"the table {table} cannot be checked: {_reason(failure.words)}"
        return
    for part, is_sound, message in rows:
        if not is_sound:
            yield f"the part {part} of the table {table} is damaged: {_reason(str(message))}"


def _reason(message: str) -> str:
    found = _REASON.search(message)
    return found[1] if found else message


def _unknown_rows(engine: ChdbEngine, table: str, known: KnownPlaces) -> Iterator[str]:
    numbers = {f"{log_number(known.identity, log):04X}": log for log in known.stored_until}
    try:
        rows = engine.execute(_LAST_PLACES.format(database=DATABASE, table=table))
    except EngineFailure:
        return  # a damaged part, which was told of already
    for number, place in rows:
        log = numbers.get(number)
        if log is None or _position(place) >= known.stored_until[log]:
            yield (
                f"the table {table} has rows that the ledger does not know of, from "
                f"{f'the log {log}' if log else 'a log that it does not know of either'}: store "
                "and ledger are not of the same moment"
            )


def _missing_rows(engine: ChdbEngine, wanted: ExpectedRows, known: KnownPlaces) -> Iterator[str]:
    number = f"{log_number(known.identity, wanted.log):04X}"
    places = sorted(one[8:].hex().upper() for one in wanted.ids)
    try:
        rows = engine.execute(
            _IDS.format(
                database=DATABASE,
                table=wanted.table,
                number=number,
                first=places[0],
                last=places[-1],
            )
        )
    except EngineFailure:
        return  # a damaged part, which was told of already
    missing = wanted.ids - {bytes.fromhex(found) for (found,) in rows}
    if missing:
        yield (
            f"the table {wanted.table} lacks {len(missing)} of {len(wanted.ids)} rows that the "
            f"ledger has noted as stored and that are still in the log {wanted.log}"
        )


def _position(place: str) -> LogPosition:
    return LogPosition(segment=int(place[:6], 16), offset=int(place[6:], 16))
