"""A column of a batch whose rows have few different values."""

from array import array
from collections.abc import Sequence
from typing import Any, overload

ROW_INDEX_TYPE = "I"
"""The type code of an array of indexes."""


class IndexedColumn(Sequence[Any]):
    """The values of rows, as the index of each row's value in `values`.

    Columns can share their indexes. An Arrow array is made of the few values, and repeats them by
    the indexes in one step for the whole column.
    """

    __slots__ = ("indexes", "values")

    def __init__(self, values: Sequence[Any], indexes: "array[int]") -> None:
        self.values = values
        self.indexes = indexes

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.indexes)

    @overload
    def __getitem__(self, row: int) -> Any: ...  # noqa: ANN401 - a value of a column

    @overload
    def __getitem__(self, row: slice) -> "IndexedColumn": ...

    def __getitem__(self, row: int | slice) -> Any:
        """Return the value of a row, or the column of some rows."""
        if isinstance(row, slice):
            return IndexedColumn(self.values, self.indexes[row])
        return self.values[self.indexes[row]]
