"""Copies rows from one store to another until both have the same.

What is to be copied is found by comparing: nothing has to be remembered but the piece under way,
which is on disk before it is sent, and is sent again first, byte for byte and under its token, by
whoever goes on after a crash.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import groupby
from typing import Protocol, cast

from arro3.core import Array, DataType, RecordBatch, Table
from arro3.io import read_ipc_stream, write_ipc_stream

from headrace.adapters.store_migration.copy_stores import CopyEnd
from headrace.adapters.store_migration.migration_state import Piece
from headrace.adapters.store_migration.plan import (
    Minutes,
    PieceBounds,
    Reading,
    Sized,
    WantedDay,
    plan_readings,
)
from headrace.adapters.store_migration.selects import (
    Stretch,
    figures_of_days,
    figures_of_minutes,
    ids_of,
    rows_of,
)
from headrace.formats.arrow_batch import RowMark, StreamHead, head_metadata
from headrace.model.catalog import STORED_TABLES
from headrace.model.catalog import Table as CatalogTable
from headrace.model.migration import Day, Difference, Figures
from headrace.model.storage import STORED, StoredTable

_TABLES: Mapping[str, CatalogTable] = {table.name: table for table in STORED_TABLES}


class PieceDesk(Protocol):
    """Keeps the piece under way on disk."""

    def under_way(self) -> Piece | None:
        """Return what was begun and not ended."""
        ...

    def begin(self, table: str, stream: bytes) -> Piece:
        """Give a piece its token; it is on disk when this returns."""
        ...

    def end(self) -> None:
        """Forget the piece under way: it is stored."""
        ...


class CopyProgress(Protocol):
    """Who is told how far a copy is."""

    def comparing(self) -> None:
        """Both stores are read."""
        ...

    def copying(self, done: int, total: int) -> None:
        """So many rows of all that were missing are there."""
        ...


class StoreCopy:
    """Copies; blocking. Nothing but this may change the target meanwhile.

    Every method raises `OperatorError`, and may then be called again.
    """

    def __init__(
        self,
        *,
        source: CopyEnd,
        target: CopyEnd,
        desk: PieceDesk,
        progress: CopyProgress,
        bounds: PieceBounds,
    ) -> None:
        self._source = source
        self._target = target
        self._desk = desk
        self._progress = progress
        self._bounds = bounds
        self._gathered: list[RecordBatch] = []
        self.copied = 0

    def finish_piece(self) -> None:
        """Send the piece that a killed run may have left halfway."""
        piece = self._desk.under_way()
        if piece is not None:
            self._send(piece)

    def copy(self) -> None:
        """Copy what the target lacks. Rows it has beyond the source stay: see `compare`."""
        self._progress.comparing()
        wanted, total = list[WantedDay](), 0
        for day, source, target in self._differing():
            if source.figures.rows:
                wanted.append(WantedDay(day, source, is_new=not target.figures.rows))
                total += max(source.figures.rows - target.figures.rows, 0)
        self._progress.copying(0, total)
        for table, readings in groupby(
            plan_readings(wanted, self._minutes, self._bounds), key=lambda reading: reading.table
        ):
            for _ in self._copy_table(table, readings):
                self._progress.copying(min(self.copied, total), total)

    def compare(self) -> Sequence[Difference]:
        """Return the days that differ."""
        self._progress.comparing()
        return [
            Difference(day, source.figures, target.figures)
            for day, source, target in self._differing()
        ]

    def _differing(self) -> Iterator[tuple[Day, Sized, Sized]]:
        for table in STORED.values():
            source = _sizes_of_days(self._source, table)
            target = _sizes_of_days(self._target, table)
            for day in sorted(source.keys() | target.keys()):
                pair = source.get(day, Sized()), target.get(day, Sized())
                if pair[0].figures != pair[1].figures:
                    yield day, *pair

    def _minutes(self, wanted: WantedDay) -> Minutes:
        table, stretch = STORED[wanted.day.table], wanted.stretch()
        return Minutes(
            source=_sizes_of_minutes(self._source, table, stretch),
            target={} if wanted.is_new else _sizes_of_minutes(self._target, table, stretch),
        )

    def _copy_table(self, table: str, readings: Iterable[Reading]) -> Iterator[None]:
        """Gather rows, of several websites where they are few, and send what makes a piece."""
        for reading in readings:
            batch = self._read(STORED[table], reading)
            if batch is None:
                continue
            if _is_beyond([*self._gathered, batch], self._bounds):
                self._send_gathered(table)
                yield
            self._gathered.append(batch)
        self._send_gathered(table)
        yield

    def _read(self, table: StoredTable, reading: Reading) -> RecordBatch | None:
        stretch = reading.stretch.parameters()
        stream = self._source.arrow(rows_of(table), stretch)
        there: frozenset[bytes] = frozenset()
        if not reading.is_new or self._target.may_be_behind():
            found = self._target.rows(ids_of(self._target.place_of_ids(table)), stretch)
            there = frozenset(bytes.fromhex(one) for (one,) in found)
        return _rows_beyond(stream, there)

    def _send_gathered(self, table: str) -> None:
        if not self._gathered:
            return
        (batch,) = Table.from_batches(self._gathered).combine_chunks().to_batches()
        self._gathered = []
        self._send(self._desk.begin(table, _write(batch)))
        self.copied += batch.num_rows

    def _send(self, piece: Piece) -> None:
        self._target.insert(_TABLES[piece.table], piece.stream, token=piece.token)
        self._desk.end()


def _sizes_of_days(end: CopyEnd, table: StoredTable) -> Mapping[Day, Sized]:
    return {
        Day(table.name, website_id, int(day)): _sized(figures)
        for website_id, day, *figures in end.rows(figures_of_days(table), {})
    }


def _sizes_of_minutes(end: CopyEnd, table: StoredTable, day: Stretch) -> Mapping[int, Sized]:
    rows = end.rows(figures_of_minutes(table), day.parameters())
    return {int(minute): _sized(figures) for minute, *figures in rows}


def _sized(figures: Sequence[str]) -> Sized:
    rows, checksum, size = map(int, figures)
    return Sized(Figures(rows, checksum), size)


def _is_beyond(batches: Sequence[RecordBatch], bounds: PieceBounds) -> bool:
    rows = sum(batch.num_rows for batch in batches)
    return rows > bounds.rows or sum(batch.nbytes for batch in batches) > bounds.bytes


def _rows_beyond(stream: bytes, there: frozenset[bytes]) -> RecordBatch | None:
    """Return the rows of a stream whose ids are not there, as one batch; None without any."""
    batches = read_ipc_stream(BytesIO(stream)).read_all().combine_chunks().to_batches()
    if not batches:
        return None
    (batch,) = batches
    if there:
        ids = cast("list[bytes]", batch["id"].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        kept = [index for index, one in enumerate(ids) if one not in there]
        batch = batch.take(  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
            Array(kept, DataType.uint64())
        )
    return batch if batch.num_rows else None


def _write(batch: RecordBatch) -> bytes:
    """Write a piece that says of itself what the loader's batches say; see `read_head`."""
    first: bytes = batch["id"][0].as_py()
    website: bytes = batch["website_id"][0].as_py()
    time_ms: int = batch["time"].cast(DataType.int64())[0].as_py()
    websites = cast("list[bytes]", batch["website_id"].to_pylist())  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
    head = StreamHead(
        RowMark(website.decode(), time_ms, first), frozenset(one.decode() for one in set(websites))
    )
    stream = BytesIO()
    marked = batch.with_schema(batch.schema.with_metadata(head_metadata(head)))
    write_ipc_stream(marked, stream, compression=None)
    return stream.getvalue()
