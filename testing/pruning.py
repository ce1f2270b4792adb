"""Pruning for tests of an engine that has none."""

from headrace.base.errors import StoreUnavailable
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import WebsiteId


class NoPruning:
    """Prunes nothing."""

    async def describe(self, website_id: WebsiteId | None) -> tuple[StoredRows, ...]:
        raise StoreUnavailable(f"nothing is known of {website_id}")

    async def prune(self, *, dry_run: bool = False) -> tuple[ExpiredRows, ...]:
        raise StoreUnavailable(f"nothing is pruned, dry run: {dry_run}")

    def start(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
