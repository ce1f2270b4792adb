"""Parameters of requests for values; some search in a column that has no texts."""

from collections.abc import Callable

from tests.oracle.columns import ALIASES, TABLES
from tests.property.generators.chances import SeededRandom
from tests.property.generators.query_cases import columns_of, draw_range, draw_text

Parameters = dict[str, str]

_CASES: tuple[Callable[[str], str], ...] = (str, str.upper, str.lower, str.swapcase)


def draw_values_request(random_source: SeededRandom) -> Parameters:
    """Draw valid parameters, except for a search in numbers."""
    table = random_source.choice((*TABLES, "events", "events", *ALIASES))
    field = random_source.choice(columns_of(ALIASES.get(table, table)))
    parameters = {"table": table, "field": field}
    if random_source.has_probability(0.5):
        change_case = random_source.choice(_CASES)
        parameters["search"] = change_case(draw_text(random_source, field))
    if random_source.has_probability(0.5):
        parameters["limit"] = random_source.choice(("1", "2", "3", "1000", "5000"))
    match random_source.integer(0, 3):
        case 0:
            return parameters
        case 1:
            return parameters | {"lastDays": random_source.choice(("1", "2", "9", "365", "3652"))}
        case _:
            return parameters | draw_range(random_source)
