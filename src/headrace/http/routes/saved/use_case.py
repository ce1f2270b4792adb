"""The use case behind the endpoints of saved queries."""

from typing import Protocol

from headrace.model.saved_query import SavedQuery, SavedQueryEntry
from headrace.model.tenancy import WebsiteId
from headrace.ports.saved_queries import SaveResult
from headrace.query.saved.service import IsKnown, SavedAnswer


class SavedQueryUseCase(Protocol):
    """The use case behind the endpoints: `SavedQueryService`."""

    async def save(
        self, website_id: WebsiteId, name: str, body: bytes, *, rotate: bool
    ) -> SaveResult:
        """Save a query."""
        ...

    async def read(self, website_id: WebsiteId, name: str) -> SavedQuery:
        """Return a saved query."""
        ...

    async def list_of(self, website_id: WebsiteId) -> tuple[SavedQueryEntry, ...]:
        """Return all saved queries of a website, by name."""
        ...

    async def delete(self, website_id: WebsiteId, name: str) -> SavedQuery:
        """Delete a saved query and return what was deleted."""
        ...

    async def read_by_token(self, token: str, name: str, website_id: str | None) -> SavedQuery:
        """Return the saved query of a token."""
        ...

    async def answer(self, saved: SavedQuery, media_format: str, is_known: IsKnown) -> SavedAnswer:
        """Answer a saved query. Cancelling the call cancels the query in the store."""
        ...
