"""The cutoffs of websites, for whatever reads or accepts their rows."""

from typing import Protocol

from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.tenancy import WebsiteId


class CutoffSource(Protocol):
    """Used from one event loop by many tasks."""

    async def cutoffs(self, website_id: WebsiteId) -> Cutoffs:
        """Return the cutoffs of a website at the time of the call.

        They follow a change of its retention that was made on this machine before the call, and one
        made elsewhere within seconds. Raises `DirectoryUnavailable` when neither the directory nor
        a recent snapshot of it can be read.
        """
        ...


class FixedCutoffs:
    """A `CutoffSource` with the same cutoffs for every website at any time."""

    def __init__(self, cutoffs: Cutoffs = NO_CUTOFFS) -> None:
        self._cutoffs = cutoffs

    async def cutoffs(self, website_id: WebsiteId) -> Cutoffs:  # noqa: ARG002 - the same for all
        """Return them."""
        return self._cutoffs
