"""The ids of rows: of logged items, of imported ones, and of those from other products."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.formats.row_ids import (
    FOREIGN_LOG,
    ROW_ID_BYTES,
    foreign_row_id,
    last_offsets,
    log_number,
    parse_log_offset,
    row_ids,
    split_row_ids,
)
from headrace.ports.event_log import LoggedRecord, LogOffset

NOON = 1_768_478_400_000


@given(identity=st.text(), name=st.sampled_from(["retry", "import"]) | st.integers(0, 512))
def test_no_log_has_the_number_of_foreign_rows(identity: str, name: str | int) -> None:
    log = f"worker-{name}" if isinstance(name, int) else name
    assert log_number(identity, log) != FOREIGN_LOG


def test_foreign_ids_follow_from_time_and_source_alone_and_sort_by_time() -> None:
    first, later, other = (
        foreign_row_id(NOON, b"a"),
        foreign_row_id(NOON + 1, b"a"),
        foreign_row_id(NOON, b"b"),
    )
    assert first == foreign_row_id(NOON, b"a")
    assert len({first, later, other}) == 3
    assert max(first, other) < later
    assert int.from_bytes(first[6:8], "big") == FOREIGN_LOG


def test_last_offsets_are_those_of_each_log() -> None:
    def ids(number: int, *offsets: LogOffset) -> list[bytes]:
        records = [LoggedRecord(b"", offset, offset) for offset in offsets]
        return [row_id for record in records for row_id in row_ids(number, record, NOON, [0, 1])]

    joined = b"".join(
        [
            *ids(7, LogOffset(2, 10), LogOffset(1, 900)),
            *ids(8, LogOffset(1, 3)),
            foreign_row_id(NOON, b"a"),
        ]
    )
    found = last_offsets(split_row_ids(joined))
    assert {number: parse_log_offset(offset) for number, offset in found.items()} == {
        7: LogOffset(2, 11),
        8: LogOffset(1, 4),
    }


@pytest.mark.parametrize("count", [0, 1, 3])
def test_joined_ids_are_split(count: int) -> None:
    ids = [bytes([number]) * ROW_ID_BYTES for number in range(count)]
    assert split_row_ids(b"".join(ids)) == ids
