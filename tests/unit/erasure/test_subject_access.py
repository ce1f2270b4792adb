"""What subject access shows beside the rows of the store."""

import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from headrace.erasure.subject_access import SubjectAccessService
from headrace.model.erasure import Selector, SelectorKind
from headrace.model.export import Watermark
from headrace.model.plan import CompiledQuery
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.store import CHDB_DIALECT, QueryLimits


class EmptyStore:
    """An `ExportStore` without rows."""

    @contextlib.asynccontextmanager
    async def open(self, website_id: str) -> AsyncGenerator[Watermark]:
        yield Watermark(website_id, 0)

    async def read(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        raise NotImplementedError

    async def rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[Any]]:
        del query, limits
        return ()


def entry(**item: Any) -> QuarantineEntry:
    return QuarantineEntry(
        "0", LogOffset(1, 0), "too large", stream="events", index=0, item={"name": "a", **item}
    )


async def test_quarantined_items_of_the_subject_are_shown_with_the_reason() -> None:
    entries = [
        entry(website_id="web_1", anonymous_id="ann", properties=b'{"n":1}'),
        entry(website_id="web_1", anonymous_id="eve"),
        entry(website_id="web_2", anonymous_id="ann"),
        QuarantineEntry("0", LogOffset(1, 9), "damaged", payload=b"ann"),
    ]
    service = SubjectAccessService(
        EmptyStore(), dialect=CHDB_DIALECT, read_entries=lambda: entries, max_memory_bytes=1
    )
    wanted = [Selector(SelectorKind.ANONYMOUS_ID, "ann")]
    lines = [json.loads(line) async for line in service.lines("web_1", wanted)]
    assert lines == [
        {
            "table": "quarantine",
            "name": "a",
            "website_id": "web_1",
            "anonymous_id": "ann",
            "properties": {"n": 1},
            "reason": "too large",
        }
    ]
