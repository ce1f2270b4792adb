"""Finds the items of a request that are older than their website keeps rows."""

from collections.abc import Mapping, Sequence

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs, RetentionPolicy
from headrace.model.log_records import EventKind
from headrace.model.storage import TABLE_OF_KIND
from headrace.model.tenancy import TenancySnapshot, WebsiteId
from headrace.ports.directory import LatestTenancySource

_TABLE_NAMES: Mapping[EventKind, str] = {kind: table.name for kind, table in TABLE_OF_KIND.items()}


class ItemExpiry:
    """Finds expired items; used from one event loop.

    The cutoffs of all websites are computed once for each snapshot and day, so a request to a
    service without retention pays for one comparison. An expired item is lost, so it needs the
    latest snapshot: `is_latest` and `follow_latest` are for requests that have one.
    """

    def __init__(self, tenancy: LatestTenancySource, policy: RetentionPolicy) -> None:
        self._tenancy = tenancy
        self._policy = policy
        self._day = -1
        self._snapshot: TenancySnapshot | None = None
        self._cutoffs: Mapping[WebsiteId, Cutoffs] = {}

    def find_expired(
        self,
        event_kind: EventKind,
        websites: Sequence[WebsiteId],
        timestamps_ms: Sequence[int],
        *,
        received_ms: int,
    ) -> tuple[int, ...]:
        """Return the indexes of the items before the cutoffs at the time of receipt.

        Raises `DirectoryUnavailable`.
        """
        snapshot, day = self._tenancy.current(), received_ms // MILLISECONDS_PER_DAY
        if snapshot is not self._snapshot or day != self._day:
            self._follow(snapshot, day)
        if not self._cutoffs:
            return ()
        table = _TABLE_NAMES[event_kind]
        cutoffs_ms = {
            website: self._cutoffs.get(website, NO_CUTOFFS).of_stored_table(table) or 0
            for website in dict.fromkeys(websites)
        }
        return tuple(
            index
            for index, (website, time_ms) in enumerate(zip(websites, timestamps_ms, strict=True))
            if time_ms < cutoffs_ms[website]
        )

    def is_latest(self) -> bool:
        """Return whether this machine has changed no retention that is not known here yet."""
        return self._tenancy.is_latest()

    async def follow_latest(self) -> None:
        """Read what this machine has changed. Raises `DirectoryUnavailable`."""
        await self._tenancy.latest()

    def _follow(self, snapshot: TenancySnapshot, day: int) -> None:
        now_ms = day * MILLISECONDS_PER_DAY
        cutoffs = {
            website.id: self._policy.cutoffs(website.retention, now_ms)
            for website in snapshot.websites.values()
        }
        self._cutoffs = {website: one for website, one in cutoffs.items() if one != NO_CUTOFFS}
        self._snapshot, self._day = snapshot, day
