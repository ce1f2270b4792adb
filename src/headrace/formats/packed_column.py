"""A column of a batch whose values are eight bytes each, in one piece."""

from collections.abc import Sequence
from typing import Any, Final, overload

PACKED_VALUE_BYTES: Final = 8


class PackedColumn(Sequence[bytes]):
    """The values of rows one after the other, of which an Arrow array is made in one step."""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.packed) // PACKED_VALUE_BYTES

    @overload
    def __getitem__(self, row: int) -> bytes: ...

    @overload
    def __getitem__(self, row: slice) -> "list[bytes]": ...

    def __getitem__(self, row: int | slice) -> Any:
        """Return the value of a row, or the values of some rows."""
        rows = range(len(self))[row]
        if isinstance(rows, range):
            return [self[one] for one in rows]
        start = rows * PACKED_VALUE_BYTES
        return self.packed[start : start + PACKED_VALUE_BYTES]
