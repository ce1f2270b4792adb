"""The optional parts of a query, and queries that have one of them for certain.

A body of `query_cases` has each part with a probability of its own: rows over the other groups,
which need three other parts, are in one of twenty.
"""

from typing import Any, Final

from tests.oracle.columns import is_list, is_object
from tests.property.generators.chances import SeededRandom
from tests.property.generators.query_cases import Body, draw_body

_OF_ROOT: Final = ("compare", "totals", "top", "others", "fill", "having", "lastDays", "orderBy")
GROUPS_OF_FILTERS: Final = "groups of filters"
PARTS: Final = (*_OF_ROOT, "granularity", "groups", GROUPS_OF_FILTERS, "filters of selects")
DRAWN_PARTS: Final = (*_OF_ROOT[:6], "others", GROUPS_OF_FILTERS, "filters of selects")
"""What is drawn for certain now and then."""

_ATTEMPTS: Final = 200


def parts_of(body: Body) -> list[str]:
    """Return which parts a body has; a false or empty one is none."""
    query: Any = body.get("query")
    if not is_object(query):
        return []
    selects, filters = _objects(query.get("selects")), _objects(query.get("filters"))
    has = {
        **{name: bool(body.get(name)) for name in (*_OF_ROOT, "granularity")},
        "groups": bool(query.get("groupBy")),
        GROUPS_OF_FILTERS: any("or" in one or "and" in one for one in filters),
        "filters of selects": any(one.get("filters") for one in selects),
    }
    return [name for name in PARTS if has[name]]


def draw_body_with(random_source: SeededRandom, part: str) -> Body:
    """Draw bodies until one has this part."""
    for _ in range(_ATTEMPTS):
        body = draw_body(random_source)
        if part in parts_of(body):
            return body
    raise AssertionError(f"no body has {part}")


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if is_object(one)] if is_list(value) else []
