"""The rows of live streams, which are read from the logs ahead of the loader."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.ingest.load.live_rows import LiveRows
from headrace.model.log_records import UNKNOWN_VISITOR, Event, EventRecord, encode_record
from tests.unit.ingest.load.test_loader import NOON, ListedLogs, events

OUT_OF_RANGE = encode_record(EventRecord(NOON, UNKNOWN_VISITOR, [Event("web_a", 2**63, "bad")]))


def names(rows: Sequence[tuple[str, bytes]]) -> list[str]:
    return [msgspec.json.decode(body)["row"]["event_name"] for _, body in rows]


def test_rows_after_one_that_can_never_be_shown_are_read_once_it_is_passed_over(
    tmp_path: Path,
) -> None:
    logs = ListedLogs(worker_0=[events("before")])
    with closing(SqliteLedger.open(tmp_path / "ledger.sqlite")) as ledger:
        live = LiveRows(logs, ledger)
        live.watch(["web_a"])
        logs.logs["worker-0"] += [events("lost", event_id="x"), OUT_OF_RANGE]
        for _ in range(2):
            with pytest.raises(ValueError, match="292278994"):
                live.read(logs.durable_offsets())
        live.pass_over(logs.durable_offsets())
        logs.logs["worker-0"] += [events("repeat", event_id="x"), events("after")]
        rows, is_complete = live.read(logs.durable_offsets())
    assert (names(rows), is_complete) == (["after"], True)
