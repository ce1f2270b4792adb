"""Versions of ranges of stored rows: whether an answer over them may have changed."""

import sys
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from headrace.model.tenancy import WebsiteId


class RowRange(Struct, frozen=True):
    """The rows of a stored table whose time is in a range; `end_ms` is not part of it."""

    table: str
    start_ms: int
    end_ms: int


ALL_TIME: Final = (-sys.maxsize, sys.maxsize)
"""The ends of a range that has every row."""


class RowVersions(Protocol):
    """Used from one event loop by many tasks."""

    async def version_of(self, website_id: WebsiteId, ranges: Sequence[RowRange]) -> str | None:
        """Return the version of a website's rows in ranges, over all that was acknowledged before.

        While the version is the same, no row in the ranges was stored, erased or deleted: the same
        select returns the same. A select that starts after the call sees at least the rows of the
        version. None means that nobody knows: rows of the ranges change at this moment, or other
        machines store rows, too. Raises `StoreUnavailable`.
        """
        ...


class UnknownVersions:
    """`RowVersions` of a store that other machines write to."""

    async def version_of(
        self,
        website_id: WebsiteId,  # noqa: ARG002 - the protocol names it
        ranges: Sequence[RowRange],  # noqa: ARG002
    ) -> str | None:
        """Return None."""
        return None
