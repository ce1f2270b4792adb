"""Reads many bytes of a large table at once, by their positions.

Arrow's `take` needs a few nanoseconds for each, also where every position is in another line of
the processor's cache; a step of Python that waits for memory takes ten times as long. What `take`
returns is read from an Arrow stream, since arro3 has no shorter way without numpy.
"""

from array import array
from io import BytesIO

from arro3.core import Array, DataType, Field, RecordBatch, Schema
from arro3.io import write_ipc_stream

from headrace.formats.arrow_framing import END_OF_STREAM

_SCHEMA = Schema([Field("values", DataType.uint8(), nullable=False)])
_ALIGNMENT = 64
"""A stream pads the bytes of a column to a multiple of this at most."""

_POSITION_BYTES = 4


class GatheredBytes:
    """A table of bytes. It may be changed in place, and must keep its size."""

    def __init__(self, table: bytearray) -> None:
        self._table = Array.from_buffer(table)  # pyright: ignore[reportUnknownMemberType] - the stubs' gap

    def at(self, positions: "array[int]") -> bytes:
        """Return the byte at each position, which are 32-bit numbers."""
        count = len(positions)
        if not count:
            return b""
        padding = -count % _ALIGNMENT  # then nothing stands between the bytes and the end
        if padding:
            positions = positions + array("I", bytes(_POSITION_BYTES * padding))
        values = self._table.take(Array.from_buffer(positions))  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        batch = RecordBatch.from_arrays([values], schema=_SCHEMA)  # pyright: ignore[reportUnknownMemberType] - the stubs' gap
        stream = BytesIO()
        write_ipc_stream(batch, stream, compression=None)
        start = -len(END_OF_STREAM) - len(positions)
        return stream.getvalue()[start : start + count]
