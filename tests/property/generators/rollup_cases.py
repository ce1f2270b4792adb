"""Queries that the daily rollup can answer, and their neighbours that it cannot.

Each draw has the parts of a dashboard's queries; now and then one part needs the events.
"""

from typing import Any

from tests.property.generators.chances import SeededRandom, random_strategy
from tests.property.generators.query_cases import draw_range
from tests.property.generators.query_data import Item

DIMENSIONS = ("country", "browser_name", "language", "utm_source", "utm_term", "device_type")
IDS = ("anonymous_id", "session_id")
PAGE_VIEWS: Item = {
    "field": "event_name",
    "operator": "in",
    "value": ["screen_view", "pageview", "page_view"],
}
NEARLY_PAGE_VIEWS: tuple[Item, ...] = (
    PAGE_VIEWS | {"operator": "not_in"},
    PAGE_VIEWS | {"value": ["screen_view", "pageview"]},
)
_NEEDS_EVENTS = 0.06

Body = dict[str, Any]


def _filter(random_source: SeededRandom) -> Item:
    if random_source.has_probability(_NEEDS_EVENTS):
        return {"field": "path", "operator": "is_set"}
    if random_source.has_probability(0.15):
        return {"field": "is_bot", "operator": "in", "value": [True, False]}
    if random_source.has_probability(0.2):
        return {"field": random_source.choice(IDS), "operator": "is_set"}
    operator = random_source.choice(("eq", "ne", "in", "is_set", "is_not_set", "contains"))
    item: Item = {"field": random_source.choice(DIMENSIONS), "operator": operator}
    value = random_source.choice(("US", "de", "Chrome", "a", ""))
    match operator:
        case "is_set" | "is_not_set":
            return item
        case "in":
            return item | {"value": [value, "AU"]}
        case _:
            return item | {"value": value}


def _select(random_source: SeededRandom, number: int) -> Item:
    of_ids = {"field": random_source.choice(IDS), "aggregate": "uniq"}
    select = random_source.choice(({"field": "*", "aggregate": "count"}, of_ids, of_ids))
    filters = [PAGE_VIEWS] if random_source.has_probability(0.3) else []
    if random_source.has_probability(_NEEDS_EVENTS):
        filters = [random_source.choice(NEARLY_PAGE_VIEWS)]
    filters += [_filter(random_source)] if random_source.has_probability(0.2) else []
    return select | {"alias": f"s{number}"} | ({"filters": filters} if filters else {})


def draw_dashboard_body(random_source: SeededRandom) -> Body:
    """Draw a body of a dashboard."""
    selects = [_select(random_source, number) for number in range(random_source.integer(1, 4))]
    query: Body = {"table": "events", "selects": selects}
    if random_source.has_probability(0.4):
        query["filters"] = random_source.times(1, 2, _filter)
    if random_source.has_probability(0.5):
        groups = DIMENSIONS if random_source.has_probability(0.8) else (*IDS, "is_bot")
        query["groupBy"] = random_source.sample(groups, 1, 2)
    body: Body = {"query": query} | draw_range(random_source)
    if random_source.has_probability(0.4):
        body["granularity"] = random_source.choice(("daily", "daily", "weekly", "monthly"))
        body["fill"] = random_source.choice((True, False))
        if random_source.has_probability(0.8):
            body["timezone"] = random_source.choice(("UTC", "Etc/GMT", "Africa/Abidjan"))
        if "groupBy" in query and random_source.has_probability(0.4):
            body |= {
                "top": random_source.choice((1, 2, 5)),
                "others": random_source.choice((True, False)),
            }
    if random_source.has_probability(0.4):
        body["compare"] = random_source.choice(
            (
                "previous_period",
                "previous_year",
                {"startDate": "2025-10-24", "endDate": "2025-10-27"},
            )
        )
    if random_source.has_probability(0.3):
        body["totals"] = True
    return body


dashboard_bodies = random_strategy(draw_dashboard_body)
