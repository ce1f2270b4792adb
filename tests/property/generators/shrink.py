"""Reduces a query for as long as it still shows a defect, to make failures readable."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from tests.oracle.columns import is_list, is_object

Body = dict[str, Any]

_LISTS = ("filters", "groupBy", "selects")


def minimize(body: Body, is_wrong: Callable[[Body], bool]) -> Body:
    """Remove parts one by one for as long as the rest is still wrong."""
    for smaller_bodies in _without_a_part(body):
        if is_wrong(smaller_bodies):
            return minimize(smaller_bodies, is_wrong)
    return body


def _without_a_part(body: Body) -> Iterator[Body]:
    for key in body:
        if key not in ("query", "startDate", "endDate"):
            yield {name: value for name, value in body.items() if name != key}
    query: Any = body.get("query")
    if not is_object(query):
        return
    for name in _LISTS:
        items: Any = query.get(name)
        for number in range(len(items) if is_list(items) else 0):
            smaller_bodies = deepcopy(body)
            del smaller_bodies["query"][name][number]
            yield smaller_bodies
