"""Cutoffs that follow from the retention of websites in the directory."""

from headrace.adapters.directory.tenancy_source import PollingTenancySource
from headrace.base.clock import Clock
from headrace.model.data_retention import NO_RETENTION, Cutoffs, RetentionPolicy
from headrace.model.tenancy import WebsiteId


class DirectoryCutoffs:
    """The `CutoffSource` over the snapshot of the directory, by the clock of this machine."""

    def __init__(
        self, tenancy: PollingTenancySource, *, policy: RetentionPolicy, clock: Clock
    ) -> None:
        self._tenancy = tenancy
        self._policy = policy
        self._clock = clock

    async def cutoffs(self, website_id: WebsiteId) -> Cutoffs:
        """Return the cutoffs of a website; see `CutoffSource.cutoffs`.

        An unknown website has the default of the service.
        """
        website = (await self._tenancy.latest()).websites.get(website_id)
        retention = NO_RETENTION if website is None else website.retention
        return self._policy.cutoffs(retention, self._clock.now_ms())
