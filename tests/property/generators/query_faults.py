"""Functions that put one error into the body of a query; some bodies remain unchanged."""

from collections.abc import Callable
from typing import Any

Body = dict[str, Any]


def _condition(field: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


def _nested(depth: int, item: dict[str, Any]) -> dict[str, Any]:
    return item if depth == 0 else {"or": [_nested(depth - 1, item)]}


def _at(*path: Any, to: Any) -> Callable[[Body], None]:
    def corrupt(body: Any) -> None:
        *parents, last = path
        for parent in parents:
            body = body[parent]
        body[last] = to

    return corrupt


def _more(key: str, item: Any, count: int) -> Callable[[Body], None]:
    def corrupt(body: Body) -> None:
        body["query"][key] = [*(body["query"].get(key) or []), *[item] * count]

    return corrupt


_COUNT = {"field": "*", "aggregate": "count"}
SINGLE_ERRORS: tuple[Callable[[Body], None], ...] = (
    _at("unknown", to=1),
    _at("query", to=[]),
    _at("query", "groupby", to=[]),
    _at("query", "table", to="nope"),
    _at("query", "table", to=None),
    _at("query", "selects", to=[]),
    _at("query", "selects", to={}),
    _at("query", "selects", 0, to={"field": "*"}),
    _at("query", "selects", 0, to={"field": "*", "aggregate": "sum"}),
    _at("query", "selects", 0, to={"field": "nope", "aggregate": "count"}),
    _at("query", "selects", 0, to={"field": "country", "aggregate": "avg"}),
    _at("query", "selects", 0, to={"field": "country", "aggregate": "mean"}),
    _at("query", "selects", 0, to={"field": "country", "aggregate": "earliest"}),
    _at("query", "selects", 0, to={"field": "time", "aggregate": "latest"}),
    _at("query", "selects", 0, to={"field": "*", "aggregate": "latest"}),
    _at("query", "selects", 0, to={"field": "value", "aggregate": "good_share"}),
    _at("query", "selects", 0, to={"field": "metric_value", "aggregate": "poor_share"}),
    _at("query", "selects", 0, to={**_COUNT, "alias": ""}),
    _at("query", "selects", 0, to={**_COUNT, "alias": "x" * 65}),
    _at("query", "selects", 0, to={**_COUNT, "alias": None}),
    _at("query", "selects", 0, to={**_COUNT, "alias": 5}),
    _at("query", "selects", 0, to={**_COUNT, "filters": None}),
    _at("query", "selects", 0, to={**_COUNT, "filters": {}}),
    _at("query", "selects", 0, to={**_COUNT, "filters": [{"field": "country"}]}),
    _at("query", "selects", 0, to={**_COUNT, "filters": [_condition("nope", "eq", 1)]}),
    _at("query", "selects", 0, to={**_COUNT, "filters": [_condition("is_bot", "eq", True)]}),
    _at("query", "selects", 0, to={**_COUNT, "filters": [_condition("country", "ne", "US")] * 5}),
    _at("query", "selects", 0, to={**_COUNT, "filters": [_condition("country", "ne", "US")] * 6}),
    _at("query", "selects", 0, to={**_COUNT, "filters": [{"or": [_condition("id", "eq", 5)]}]}),
    _at("query", "selects", 0, to={**_COUNT, "alias": "", "filters": [_condition("*", "eq", 5)]}),
    _more("selects", _COUNT, 2),
    _more("selects", _COUNT, 11),
    _more("filters", _condition("country", "eq", "US"), 18),
    _more("filters", _condition("country", "eq", "US"), 21),
    _more("filters", _condition("nope", "eq", "US"), 1),
    _more("filters", _condition("*", "eq", "US"), 1),
    _more("filters", _condition("id", "eq", "US"), 1),
    _more("filters", _condition("website_id", "eq", "US"), 1),
    _more("filters", _condition("country", "is", "US"), 1),
    _more("filters", _condition("country", "eq", 5), 1),
    _more("filters", _condition("country", "eq", None), 1),
    _more("filters", _condition("country", "eq", ["US"]), 1),
    _more("filters", _condition("country", "in", "US"), 1),
    _more("filters", _condition("country", "in", []), 1),
    _more("filters", _condition("country", "in", ["US", None]), 1),
    _more("filters", _condition("country", "in", ["US"] * 1001), 1),
    _more("filters", _condition("country", "eq", {"a": 1}), 1),
    _more("filters", _condition("is_bot", "eq", True), 1),
    _more("filters", _condition("is_bot", "in", [True, False]), 1),
    _more("filters", _condition("is_bot", "gt", True), 1),
    _more("filters", _condition("is_bot", "eq", "true"), 1),
    _more("filters", _condition("time", "contains", "2025"), 1),
    _more("filters", _condition("time", "gt", "soon"), 1),
    _more("filters", _condition("lineno", "gt", "x"), 1),
    _more("filters", _condition("duration", "gte", True), 1),
    _more("filters", _condition("received_at", "gt", "2025-11-01"), 1),
    _more("filters", _condition("properties.k", "gt", True), 1),
    _more("filters", _condition("properties.k", "contains", 5), 1),
    _more("filters", {"field": "country", "operator": "eq"}, 1),
    _more("filters", {"or": [_condition("country", "eq", "US")] * 10}, 2),
    _more("filters", {"and": [_condition("country", "eq", "US")] * 21}, 1),
    _more("filters", {"or": []}, 1),
    _more("filters", {"or": None}, 1),
    _more("filters", {"or": {}}, 1),
    _more("filters", {"and": [5]}, 1),
    _more("filters", {"or": [_condition("country", "eq", "US")], "and": []}, 1),
    _more("filters", {"or": [_condition("country", "eq", "US")], "and": None}, 1),
    _more("filters", {"or": [_condition("country", "eq", "US")], "field": "country"}, 1),
    _more("filters", {"not": [_condition("country", "eq", "US")]}, 1),
    _more("filters", _nested(3, _condition("is_bot", "eq", True)), 1),
    _more("filters", _nested(3, _condition("nope", "eq", True)), 1),
    _more("filters", _nested(4, _condition("country", "eq", "US")), 1),
    _more("filters", _condition("country", "matches", "("), 1),
    _more("filters", _condition("country", "matches", "a" * 256), 1),
    _more("filters", _condition("country", "not_matches", "a" * 257), 1),
    _more("filters", _condition("country", "matches", 5), 1),
    _more("filters", _condition("time", "ends_with", "Z"), 1),
    _more("filters", _condition("country", "is_set", True), 1),
    _more("filters", _condition("is_bot", "is_set", None), 1),
    _more("filters", {"field": "country", "operator": "is_not_set"}, 1),
    _more("filters", {"operator": "is_not_set"}, 1),
    _more("groupBy", "nope", 1),
    _more("groupBy", "*", 1),
    _more("groupBy", "properties.", 1),
    _more("groupBy", "country", 2),
    _more("groupBy", "country", 6),
    _more("groupBy", 5, 1),
    _at("startDate", to="2025-02-30"),
    _at("startDate", to=None),
    _at("startDate", to="2026-01-01"),
    _at("startDate", to="2015-01-01"),
    _at("endDate", to="today"),
    _at("endDate", to="2040-01-01"),
    _at("endDate", to=5),
    _at("timezone", to="Mars/Olympus"),
    _at("timezone", to=None),
    _at("timezone", to=5),
    _at("granularity", to="yearly"),
    _at("granularity", to=None),
    _at("granularity", to="daily"),
    _at("limit", to=0),
    _at("limit", to=2.5),
    _at("limit", to="5"),
    _at("limit", to=None),
    _at("offset", to=-1),
    _at("offset", to=1_000_001),
    _at("offset", to=None),
    _at("fill", to=True),
    _at("fill", to="yes"),
    _at("totals", to=1),
    _at("top", to=0),
    _at("top", to=101),
    _at("top", to=2.5),
    _at("top", to="5"),
    _at("top", to=3),
    _at("others", to=True),
    _at("others", to=1),
    _at("compare", to="previous"),
    _at("compare", to=5),
    _at("compare", to={"startDate": "2025-10-22"}),
    _at("compare", to={"start": "2025-10-22"}),
    _at("having", to=5),
    _at("having", to=[]),
    _at("having", to={}),
    _at("having", to={"nope": 1}),
    _at("having", to=[5]),
    _at("having", to=[{"field": "nope", "operator": "gt", "value": 1}]),
    _at("having", to=[{"field": "n", "operator": "contains", "value": 1}]),
    _at("having", to=[{"field": "n", "operator": "gt", "value": 1, "or": []}]),
    _at("having", to=[{"field": "n", "operator": "gt", "value": "1"}]),
    _at("having", to=[{"field": 5, "operator": "gt"}] * 11),
    _at("lastDays", to=7),
    _at("lastDays", to=0),
    _at("orderBy", to=[{"field": "nope"}]),
    _at("orderBy", to=[{"field": "date", "direction": "up"}]),
    _at("orderBy", to=[{"field": "date"}] * 6),
    _at("orderBy", to={}),
)
