"""The identity of a select: equal keys have equal results over the same rows."""

from msgspec import Struct

from headrace.ports.store import QueryLimits


class QueryKey(Struct, frozen=True):
    """A select, its encoded parameters (the website included) and its limits."""

    website_id: str
    sql: str
    parameters: tuple[tuple[str, str], ...]
    limits: QueryLimits

    def text_size(self) -> int:
        """Return the size of its texts in characters."""
        return len(self.sql) + sum(len(name) + len(text) for name, text in self.parameters)
