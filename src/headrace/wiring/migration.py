"""What moves all rows between the data directory and ClickHouse, while the service runs or not."""

import contextlib
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from headrace.adapters.data_dir.lock import SERVE, DataHeld, Holder
from headrace.adapters.data_dir.paths import STORE, DataPlaces
from headrace.adapters.engine.ipc.snapshot_client import borrowed_snapshot
from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.adapters.store.clickhouse.address import ClickHouseAddress, parse_address
from headrace.adapters.store_migration.copy_stores import ClickHouseEnd, CopyEnd, EmbeddedEnd
from headrace.adapters.store_migration.copying import CopyProgress, StoreCopy
from headrace.adapters.store_migration.migration_state import Move, MoveDesk, name_of
from headrace.adapters.store_migration.plan import PieceBounds
from headrace.adapters.store_migration.selects import count_of
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, data_path
from headrace.base.telemetry import get_logger
from headrace.model.migration import Outcome, Target
from headrace.model.storage import STORED
from headrace.wiring.data import ENGINE_SOCKET, check_data, check_there_is_data, held_for
from headrace.wiring.store_address import clickhouse_of

_COMMAND = "headrace migrate-store"


def move_store(
    settings: Settings, *, to: str, progress: CopyProgress, rows_at_once: int
) -> Outcome:
    """Bring all rows to ClickHouse, or into the data directory. Safe to end and to repeat.

    `to` is "embedded", "clickhouse" for what the settings name, or a URL. Raises `OperatorError`:
    what was copied until then stays.
    """
    places = DataPlaces(data_path(settings))
    address = _address(settings, to)
    if target_of(to) is Target.CLICKHOUSE:
        check_there_is_data(settings)
    with ExitStack() as held:
        service = _hold(settings, held)
        desk = MoveDesk(places.root)
        held.enter_context(desk.held())
        clickhouse = ClickHouseEnd(address)
        held.callback(clickhouse.close)
        clickhouse.prepare()
        if target_of(to) is Target.CLICKHOUSE:
            store = held.enter_context(_source_store(places, desk, service))
            ends = _Ends(_embedded(store, held), clickhouse)
            is_last = service is None or not service.has_store
        else:
            _check_not_open(places, service)
            ends = _Ends(clickhouse, _embedded(places.store, held))
            is_last = service is None
        move = _take_up(desk, target_of(to), name_of(address), ends.target)
        if move.is_done:
            return Outcome(0, (), is_done=True)
        outcome = _run(
            StoreCopy(
                source=ends.source,
                target=ends.target,
                desk=desk,
                progress=progress,
                bounds=PieceBounds(rows=rows_at_once),
            ),
            is_last=is_last,
        )
        if outcome.is_done:
            desk.note_done(move)
        return outcome


def target_of(to: str) -> Target:
    """Return where the rows move; every URL is one of ClickHouse."""
    return Target.EMBEDDED if to == Target.EMBEDDED.value else Target.CLICKHOUSE


class _Ends(NamedTuple):
    source: CopyEnd
    target: CopyEnd


def _run(copy: StoreCopy, *, is_last: bool) -> Outcome:
    copy.finish_piece()
    copy.copy()
    differences = copy.compare()
    return Outcome(copy.copied, differences, is_done=is_last and not differences)


def _address(settings: Settings, to: str) -> ClickHouseAddress:
    if to not in (target.value for target in Target):
        return parse_address(to)
    address = clickhouse_of(settings)
    if address is None:
        raise OperatorError(
            f"--to {to} needs HEADRACE_STORE or HEADRACE_STORE_FILE, which says which ClickHouse "
            "is meant"
        )
    return address


def _hold(settings: Settings, held: ExitStack) -> Holder | None:
    """Hold the data directory; where a service does, return what it tells of itself."""
    try:
        held.enter_context(held_for(settings, _COMMAND))
    except DataHeld as refusal:
        if refusal.holder.command != SERVE:
            raise
        check_data(settings)
        return refusal.holder
    return None


@contextlib.contextmanager
def _source_store(places: DataPlaces, desk: MoveDesk, service: Holder | None) -> Generator[Path]:
    """Give the store's directory: a snapshot's, while a service has the store open."""
    if service is None:
        yield places.store
    elif service.has_store:
        with borrowed_snapshot(Path(service.runtime) / ENGINE_SOCKET) as snapshot:
            yield snapshot.path / STORE
    else:
        move = desk.read()
        if move is None or move.to is not Target.CLICKHOUSE:
            raise OperatorError(
                "the running service stores its events in ClickHouse already: stop it before its "
                "older rows are moved there"
            )
        yield places.store


def _check_not_open(places: DataPlaces, service: Holder | None) -> None:
    if service is not None and service.has_store:
        raise OperatorError(
            f"the running service keeps its rows in {places.root}, so there is nothing to bring "
            "back; start it with HEADRACE_STORE, or stop it"
        )


def _embedded(directory: Path, held: ExitStack) -> EmbeddedEnd:
    end = EmbeddedEnd(ChdbEngine(directory, log=get_logger()))
    held.callback(end.close)
    end.prepare()
    return end


def _take_up(desk: MoveDesk, to: Target, clickhouse: str, target: CopyEnd) -> Move:
    """Go on with a move, or begin one. The target must be empty, or have rows that are ours."""
    move = desk.read()
    if move is not None and (move.to, move.clickhouse) == (to, clickhouse):
        return move
    if move is None or move.clickhouse != clickhouse:
        rows = sum(int(target.rows(count_of(table), {})[0][0]) for table in STORED.values())
        if rows:
            where = f"ClickHouse ({clickhouse})" if to is Target.CLICKHOUSE else "data directory"
            raise OperatorError(
                f"the {where} has {rows} rows already that this machine did not move there: "
                "nothing was copied; name an empty one"
            )
    return desk.start(to, clickhouse)
