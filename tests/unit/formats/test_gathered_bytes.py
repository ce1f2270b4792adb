"""Bytes of a table at many positions are those that reading one by one gives."""

import random
from array import array

import pytest

from headrace.formats.gathered_bytes import GatheredBytes

SIZE = 100_003


@pytest.mark.parametrize("count", [0, 1, 7, 63, 64, 65, 2_048, 50_001])
def test_bytes_are_those_at_the_positions(count: int) -> None:
    rng = random.Random(count)  # noqa: S311 - test data
    table = bytearray(rng.randbytes(SIZE))
    positions = [rng.randrange(SIZE) for _ in range(count)]
    expected = bytes(table[position] for position in positions)
    assert GatheredBytes(table).at(array("I", positions)) == expected


def test_bytes_that_were_written_later_are_read() -> None:
    table = bytearray(SIZE)
    gathered = GatheredBytes(table)
    table[0], table[SIZE - 1] = 1, 255
    assert gathered.at(array("I", [SIZE - 1, 5, 0, SIZE - 1])) == bytes([255, 0, 1, 255])
