"""The responses of /v1/admin as the OpenAPI document has them, by what `data` is."""

from headrace.formats.directory_objects import (
    AuditObject,
    DeletedObject,
    KeyObject,
    NewKeyObject,
    OrganizationObject,
    WebsiteObject,
)
from headrace.formats.quarantine_objects import (
    EntryContentObject,
    EntryObject,
    RetriedEntryObject,
)
from headrace.http.responses import Success


class OrganizationResponse(Success[OrganizationObject], frozen=True):
    """An organization."""


class OrganizationListResponse(Success[list[OrganizationObject]], frozen=True):
    """The organizations in reach, oldest first."""


class WebsiteResponse(Success[WebsiteObject], frozen=True):
    """A website."""


class WebsiteListResponse(Success[list[WebsiteObject]], frozen=True):
    """The websites in reach, oldest first."""


class KeyResponse(Success[KeyObject], frozen=True):
    """A key or a session."""


class NewKeyResponse(Success[NewKeyObject], frozen=True):
    """A key that was created, with its secret."""


class KeyListResponse(Success[list[KeyObject]], frozen=True):
    """The keys and sessions in reach, oldest first."""


class DeletedResponse(Success[DeletedObject], frozen=True):
    """What was deleted."""


class EntryResponse(Success[EntryContentObject], frozen=True):
    """A quarantined entry with its content."""


class EntryListResponse(Success[list[EntryObject]], frozen=True):
    """The quarantined entries in reach, by log and offset."""


class RetriedEntryResponse(Success[RetriedEntryObject], frozen=True):
    """An entry that was handed to the store once more."""


class AuditResponse(Success[list[AuditObject]], frozen=True):
    """The lines of the audit log in reach, newest first."""
