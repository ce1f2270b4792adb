"""The watermark of an export is behind every row that was acknowledged, imported ones included."""

import pytest

from headrace.adapters.engine.exports import watermark_behind
from headrace.model.export import LogEnd, Watermark

END = LogEnd(7, 3, 500)


def offset(segment: int, position: int) -> bytes:
    return segment.to_bytes(3, "big") + position.to_bytes(5, "big")


@pytest.mark.parametrize(
    ("imported", "expected"),
    [
        pytest.param({}, END, id="nothing was imported"),
        pytest.param({8: offset(9, 9)}, END, id="from logs with other numbers"),
        pytest.param({7: offset(3, 499)}, END, id="back into its own machine"),
        pytest.param({7: offset(3, 500)}, LogEnd(7, 3, 501), id="from a longer log"),
        pytest.param({7: offset(4, 0)}, LogEnd(7, 4, 1), id="from a log with more segments"),
        pytest.param({7: offset(2, 9999)}, END, id="from a log with fewer segments"),
    ],
)
def test_imported_rows_of_a_log_with_the_same_number_are_before_the_watermark(
    imported: dict[int, bytes], expected: LogEnd
) -> None:
    other = LogEnd(1, 1, 1)
    watermark = Watermark("here", 1, (END, other))
    assert watermark_behind(watermark, imported) == Watermark("here", 1, (expected, other))
