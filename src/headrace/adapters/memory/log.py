"""A log that keeps its records in memory, for tests."""

import asyncio

from headrace.base.errors import LogUnavailable
from headrace.ports.event_log import OnDurable


class MemoryLog:
    """An `EventLog` whose records are a list. Rejects records while `is_broken`."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.is_broken = False
        self.is_closed = False

    async def append(self, record: bytes) -> None:
        """Keep a record. Raises `LogUnavailable`, and keeps nothing, while broken or closed."""
        if self.is_broken or self.is_closed:
            raise LogUnavailable("the log in memory is broken or closed")
        self.records.append(record)

    def append_nowait(self, record: bytes, on_durable: OnDurable) -> None:
        """Keep a record and call back in the loop's next iteration. Raises as `append` does."""
        if self.is_broken or self.is_closed:
            raise LogUnavailable("the log in memory is broken or closed")
        self.records.append(record)
        asyncio.get_running_loop().call_soon(on_durable, None)

    async def is_ready(self) -> bool:
        """Return whether `append` takes records."""
        return not (self.is_broken or self.is_closed)

    async def close(self) -> None:
        """Reject records from now on; returns when all are reported. May be called twice."""
        self.is_closed = True
        await asyncio.sleep(0)  # until then the loop calls back
