"""What exports need of a store: a watermark, and bounded reads in the formats of the engine."""

import contextlib
from collections.abc import Sequence
from typing import Any, Protocol

from headrace.model.export import Watermark
from headrace.model.plan import CompiledQuery
from headrace.ports.store import QueryLimits


class ExportStore(Protocol):
    """Used from one event loop by many tasks."""

    def open(self, website_id: str) -> contextlib.AbstractAsyncContextManager[Watermark]:
        """Begin an export of a website, which ends with the context.

        The store then has every row that was acknowledged before the call; the watermark decides
        which rows these are. Raises `StoreUnavailable` when they cannot be stored now, or when as
        many exports of the website run as may.
        """
        ...

    async def read(self, query: CompiledQuery, limits: QueryLimits) -> bytes:
        """Run a SELECT that names its format, and return its output.

        Does not wait for events to be loaded. Raises `QueryTooLarge` for more rows or bytes than a
        result may have, `QueryTimedOut`, or `StoreUnavailable`. Cancelling the call cancels it.
        """
        ...

    async def rows(self, query: CompiledQuery, limits: QueryLimits) -> Sequence[Sequence[Any]]:
        """Run a SELECT that names no format, and return its rows; see `read`."""
        ...
