"""Bodies of standard queries; nearly all filter by columns that all tables of their types have."""

from tests.oracle.columns import find_column
from tests.oracle.standard import ALL_TYPES, tables_of
from tests.property.generators.chances import SeededRandom, random_strategy
from tests.property.generators.query_cases import Body, draw_range, filter_item, single_filters


def _filters(random_source: SeededRandom, types: list[str]) -> list[Body]:
    tables = [table for name in types for table in tables_of(name)]
    items = random_source.times(
        0, 12, lambda random_source: filter_item(random_source, random_source.choice(tables))
    )
    valid = [
        item
        for item in items
        if all(
            find_column(table, one["field"]) for one in single_filters([item]) for table in tables
        )
    ]
    return items[:1] if random_source.has_probability(0.03) else valid[:2]


def draw_standard_query(random_source: SeededRandom) -> Body:
    """Draw a body; a few have a filter that not all of their tables have."""
    types = random_source.sample(ALL_TYPES, 1, random_source.choice((1, 3, 6, 15)))
    body: Body = {"types": types, **draw_range(random_source)}
    if random_source.has_probability(0.6):
        body["filters"] = _filters(random_source, types)
    if random_source.has_probability(0.6):
        body["granularity"] = random_source.choice(("hourly", "daily", "weekly", "monthly"))
    if random_source.has_probability(0.6):
        body["limit"] = random_source.choice((1, 2, 3, 100, 1000))
    if random_source.has_probability(0.5):
        body["compare"] = random_source.choice(
            (
                "previous_period",
                "previous_year",
                {"startDate": "2025-10-24", "endDate": "2025-10-27"},
                {"startDate": "2024-06-01", "endDate": "2025-10-25"},  # too many hours to fill
            )
        )
    return body


standard_queries = random_strategy(draw_standard_query)
