"""Top-level texts of /batch and /, from the bytes of a body to the columns of a row."""

import json
from collections.abc import Sequence

import pytest

from headrace.adapters.memory.store import MemoryStore, Row
from headrace.base.errors import FieldError, InvalidBody
from headrace.formats.arrow_batch import write_stream
from headrace.ingest.load.batch import group_by_kind
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.columns import TABLE_MAPPINGS
from headrace.ingest.load.deduplicate import deduplicate
from headrace.ingest.receive.convert import AuthorizedBatch, convert_batch
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ingest.receive.decoding.decode_request import BodyLimits, decode_request
from headrace.ingest.receive.enrich import NO_ENRICHMENT
from headrace.model.log_records import EventKind, decode_record, encode_record
from headrace.model.storage import STORAGE_TABLES
from headrace.model.tenancy import WebsiteId
from headrace.ports.event_log import LoggedRecord, LogOffset
from testing.tenants import NOW_MS

PATHS = (IngestPath.BATCH, IngestPath.PAGE)
TEXTS_WITHOUT_A_LIMIT = (
    *("language", "timezone", "screen_resolution", "viewport_size", "currency"),
    *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"),
)
LIMIT = 256
TEXT = "é😀" * LIMIT


def rows_of(path: IngestPath, body: object) -> list[Row]:
    """Accept a body and load it: return the rows of its events."""
    decoded = decode_request(
        path,
        json.dumps(body).encode(),
        received_ms=NOW_MS,
        has_api_key=False,
        limits=BodyLimits(max_items=10),
    )
    batch = AuthorizedBatch(
        received_ms=NOW_MS,
        items=decoded.items,
        timestamps_ms=decoded.timestamps_ms,
        websites=[WebsiteId("shop")] * len(decoded.items),
        enrichment=NO_ENRICHMENT,
        has_api_key=False,
    )
    content = decode_record(encode_record(convert_batch(path, batch)))
    logged = LoggedRecord(b"", LogOffset(1, 30), LogOffset(1, 500))
    records = [ReadRecord("worker-0", logged, NOW_MS, content)]
    kinds = group_by_kind(records, deduplicate(records, lambda _: {}), identity="ledger")
    mapping, store = TABLE_MAPPINGS[EventKind.EVENTS], MemoryStore()
    columns = mapping.columns(kinds[EventKind.EVENTS])
    store.insert(mapping.table, write_stream(STORAGE_TABLES["events"], columns), token="")
    return list(store.rows["events"])


def texts_of(row: Row, names: Sequence[str] = TEXTS_WITHOUT_A_LIMIT) -> dict[str, object]:
    return {name: row[name] for name in names}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.value)
def test_text_without_a_limit_is_accepted_and_truncated_in_its_column(path: IngestPath) -> None:
    sent = {"name": "screen_view", **dict.fromkeys(TEXTS_WITHOUT_A_LIMIT, TEXT)}

    (row,) = rows_of(path, sent)

    assert texts_of(row) == dict.fromkeys(TEXTS_WITHOUT_A_LIMIT, TEXT[:LIMIT])
    assert row["properties"] == b""


def test_other_items_of_a_batch_keep_their_texts() -> None:
    texts = ("x" * LIMIT, "x" * (LIMIT + 1), "", TEXT)

    rows = rows_of(
        IngestPath.BATCH,
        [{"name": "a", **dict.fromkeys(TEXTS_WITHOUT_A_LIMIT, text)} for text in texts],
    )

    assert [texts_of(row) for row in rows] == [
        dict.fromkeys(TEXTS_WITHOUT_A_LIMIT, text[:LIMIT]) for text in texts
    ]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.value)
@pytest.mark.parametrize(("name", "limit"), [("title", 512), ("referrer", 2048)])
def test_text_with_a_limit_is_stored_at_it_and_refused_over_it(
    path: IngestPath, name: str, limit: int
) -> None:
    (row,) = rows_of(path, {"name": "a", name: "é" * limit})
    with pytest.raises(InvalidBody) as refusal:
        rows_of(path, {"name": "a", name: "é" * (limit + 1)})

    assert row[name] == "é" * limit
    message = f"must be text of at most {limit} characters"
    assert refusal.value.field_errors == (FieldError(0, name, message),)


@pytest.mark.parametrize("scheme", ["http", "HTTP", "https", "HtTpS"])
@pytest.mark.parametrize("where", ["top level", "properties"])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.value)
def test_absolute_path_is_split_whatever_the_case_of_its_scheme(
    path: IngestPath, where: str, scheme: str
) -> None:
    url = f"{scheme}://shop.example/a%20b?utm_source=news#c"
    fields = {"path": url} if where == "top level" else {"properties": {"path": url}}

    (row,) = rows_of(path, {"name": "screen_view", **fields})

    assert texts_of(row, ("path", "url", "utm_source")) == {
        "path": "/a%20b",
        "url": url,
        "utm_source": "news",
    }
