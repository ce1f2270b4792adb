"""Erasures for tests of an engine that has none."""

from headrace.base.errors import StoreUnavailable
from headrace.model.erasure import ErasureRequest
from headrace.ports.rows.erasure import Erasure


class NoErasures:
    """Begins no erasure."""

    async def begin(self, request: ErasureRequest) -> Erasure:
        raise StoreUnavailable(f"nothing is erased from {request.website_id}")

    async def resume_pending(self) -> None:
        """Do nothing."""

    def follow_others(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
