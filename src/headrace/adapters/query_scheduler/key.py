"""A select as it is compared with others: equal ones have equal answers over equal rows."""

from msgspec import Struct

from headrace.ports.store import QueryLimits


class QueryKey(Struct, frozen=True):
    """A select with its bound values as texts, the website among them, and what it may use."""

    website_id: str
    sql: str
    parameters: tuple[tuple[str, str], ...]
    limits: QueryLimits

    def text_size(self) -> int:
        """Return how many characters it has."""
        return len(self.sql) + sum(len(name) + len(text) for name, text in self.parameters)
