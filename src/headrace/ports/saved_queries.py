"""Saved queries: custom queries under a name, which a GET answers."""

from typing import Protocol

from msgspec import Struct

from headrace.model.saved_query import SavedQuery, SavedQueryEntry
from headrace.model.tenancy import SecretHash, WebsiteId


class SaveResult(Struct, frozen=True):
    """A saved query after a write. `token` is None unless the write has made one."""

    query: SavedQuery
    token: str | None
    is_new: bool


class SavedQueries(Protocol):
    """Stores saved queries. Blocking. Raises `OperatorError` when the directory fails.

    Every call is one transaction. A website's saved queries are deleted with it.
    """

    def save(
        self, website_id: WebsiteId, name: str, body: bytes, *, rotate: bool = False
    ) -> SaveResult:
        """Save a query, or replace the one of this name.

        A new one gets a token; one that is replaced keeps its own, unless `rotate` asks for another
        one, which ends the first. Raises `OperatorError` without the website, too.
        """
        ...

    def find(self, website_id: WebsiteId, name: str) -> SavedQuery | None:
        """Return a saved query, or None."""
        ...

    def find_by_token(self, token_hash: SecretHash) -> SavedQuery | None:
        """Return the saved query that has this token, or None."""
        ...

    def list_of(self, website_id: WebsiteId) -> tuple[SavedQueryEntry, ...]:
        """Return all saved queries of a website, by name."""
        ...

    def delete(self, website_id: WebsiteId, name: str) -> SavedQuery | None:
        """Delete a saved query and its token; return what was deleted, or None."""
        ...
