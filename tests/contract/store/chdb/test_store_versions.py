"""The embedded store reports the websites that a batch changes, and reattached tables."""

from pathlib import Path
from typing import Any

import pytest

from headrace.adapters.query_scheduler.versions import DataVersions, Version
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.model.catalog import ERRORS, EVENTS
from headrace.ports.store import BatchRejected
from testing.chdb import FreshStore, arrow_stream

Row = dict[str, Any]


class Store:
    """A writer on the tables of a test, with `DataVersions` as its listener."""

    def __init__(self, tables: FreshStore) -> None:
        self.tables = tables
        self.versions = DataVersions()
        self.writer = ChdbWriter(
            tables.engine, database=tables.database, change_listener=self.versions
        )

    def now(self, *websites: str) -> list[Version | None]:
        return [self.versions.version_of(website) for website in websites]


@pytest.fixture
def store(chdb_store: FreshStore) -> Store:
    return Store(chdb_store)


def test_batch_changes_its_own_websites(store: Store) -> None:
    before = store.now("web_1", "web_2", "web_3")
    rows: list[Row] = [{"website_id": f"web_{1 + number % 2}"} for number in range(1000)]
    store.writer.insert(EVENTS, arrow_stream(EVENTS, rows), token="t")
    after = store.now("web_1", "web_2", "web_3")
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True]
    assert None not in after


def test_rejected_batch_does_not_leave_a_version_change_pending(store: Store) -> None:
    before = store.now("web_1")
    with pytest.raises(BatchRejected):
        store.writer.insert(EVENTS, arrow_stream(ERRORS, [{"website_id": "web_1"}]), token="t")
    store.writer.insert(EVENTS, arrow_stream(EVENTS, [{"website_id": "web_1"}]), token="u")
    after = store.now("web_1")
    assert after not in (before, [None])


def test_reattached_table_changes_every_website(store: Store) -> None:
    batch = arrow_stream(EVENTS, [{"website_id": "web_1"}] * 100)
    store.writer.insert(EVENTS, batch, token="t")
    before = store.now("web_2")
    path = (
        "SELECT path FROM system.parts WHERE active AND table = 'events' AND database = {d:String}"
    )
    ((part,),) = store.tables.rows(path, {"d": store.tables.database})
    Path(part, "data.bin").write_bytes(b"")
    store.writer.insert(EVENTS, batch, token="t")
    assert store.now("web_2") not in (before, [None])
