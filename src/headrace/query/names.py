"""The output names of one query: all different, and what orderBy may refer to."""

from collections.abc import Iterator

from headrace.base.errors import InvalidQuery, QueryFault
from headrace.query.suggest import quoted


class OutputNames:
    """Gathers the keys of the answer's rows while a query is checked."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def add(self, name: str) -> None:
        """Add a name. Raises `InvalidQuery` (`Duplicate output name`) where it is taken."""
        if name in self._names:
            raise InvalidQuery(QueryFault.DUPLICATE_OUTPUT_NAME, f" {quoted(name)}")
        self._names.append(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)
