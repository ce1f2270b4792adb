"""The quarantine as a caller with `manage:config` lists it, reads it and retries its entries."""

from headrace.administration.reach import Reach, find_reach
from headrace.base.errors import NotFound
from headrace.formats.quarantine_objects import (
    EntryContentObject,
    EntryObject,
    RetriedEntryObject,
    entry_object,
    entry_with_content_object,
    retried_entry_object,
)
from headrace.model.audit import actor_name
from headrace.model.tenancy import ApiKey, Website
from headrace.ports.directory import Directory
from headrace.ports.quarantine import RetryableQuarantine, StoredEntry


class QuarantineAdministration:
    """The entries of this machine within the reach of a caller; blocking.

    An entry is in reach where its website is; operators also reach those of deleted websites, and
    records that cannot be decoded. Raises `NotFound` for an id that is unknown or out of reach, and
    `OperatorError` where the directory or the files cannot be read or written.
    """

    def __init__(self, quarantine: RetryableQuarantine, directory: Directory) -> None:
        self._quarantine = quarantine
        self._directory = directory

    def list(self, caller: ApiKey) -> list[EntryObject]:
        """Return all entries in reach, without their content."""
        reach, websites = self._reach(caller)
        found = self._quarantine.readable_entries()
        return [entry_object(one) for one in found if _is_reached(reach, websites, one)]

    def read(self, caller: ApiKey, entry_id: str) -> EntryContentObject:
        """Return an entry with its content."""
        return entry_with_content_object(self._find(caller, entry_id))

    def check_reached(self, caller: ApiKey, entry_id: str) -> None:
        """Raise `NotFound` for an entry that is unknown or out of reach."""
        self._find(caller, entry_id)

    def retry(self, caller: ApiKey, entry_id: str) -> RetriedEntryObject:
        """Requeue an entry, and return it as it is then.

        Raises `RejectedField` for one whose file was changed so that it cannot be stored.
        """
        stored = self._find(caller, entry_id)
        self._quarantine.requeue([stored.id], by=actor_name(caller))
        return retried_entry_object(stored)

    def _find(self, caller: ApiKey, entry_id: str) -> StoredEntry:
        reach, websites = self._reach(caller)
        stored = self._quarantine.find(entry_id)
        if stored is None or not _is_reached(reach, websites, stored):
            raise NotFound
        return stored

    def _reach(self, caller: ApiKey) -> tuple[Reach, dict[str, Website]]:
        reach = find_reach(caller, self._directory.organizations())
        return reach, {website.id: website for website in self._directory.websites()}


def _is_reached(reach: Reach, websites: dict[str, Website], stored: StoredEntry) -> bool:
    if reach.is_operator:
        return True
    website = websites.get(stored.website_id or "")
    return website is not None and reach.has_website(website)
