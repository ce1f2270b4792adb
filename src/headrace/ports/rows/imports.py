"""What imports need of a store: which rows it has, and when it has everything that is durable."""

from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.model.imports import ImportItem

OnWait = Callable[[str], None]
"""Receives the reason why an import waits, before it tries again."""


class ImportStore(Protocol):
    """Used from one event loop by one import at a time."""

    async def wait_stored(self) -> None:
        """Return when everything that is durable now is in the store. Raises `StoreUnavailable`."""
        ...

    async def known_ids(self, items: Sequence[ImportItem]) -> frozenset[bytes]:
        """Return the ids of those items that are rows of the website already.

        Sees what `wait_stored` waited for. Raises `StoreUnavailable`.
        """
        ...
