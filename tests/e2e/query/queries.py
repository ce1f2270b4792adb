"""Builders for queries and for the events that they read."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import requests

from testing.service import Json, Row, Service, bearer
from tests.oracle.columns import is_list, is_object

NOON = "2025-03-10T12:00:00Z"
COUNT: Mapping[str, Json] = {"field": "*", "aggregate": "count", "alias": "n"}


def select(field: str, aggregate: str, alias: str | None = None) -> dict[str, Json]:
    """Return a select object; it has an alias only if one is given."""
    return {"field": field, "aggregate": aggregate, **({"alias": alias} if alias else {})}


def where(field: str, operator: str, value: Json) -> dict[str, Json]:
    """Return a filter object."""
    return {"field": field, "operator": operator, "value": value}


def query(
    *selects: Mapping[str, Json],
    table: str = "events",
    filters: Sequence[Json] = (),
    group_by: Sequence[Json] = (),
) -> dict[str, Json]:
    """Return a query object; without selects it counts rows as `n`."""
    return {
        "table": table,
        "selects": list(selects or [COUNT]),
        "filters": list(filters),
        "groupBy": list(group_by),
    }


def body(sent_query: Json = None, **root: Json) -> dict[str, Json]:
    """Return a whole body for March 2025; a root key that is None is omitted."""
    full_body = {
        "query": query() if sent_query is None else sent_query,
        "startDate": "2025-03-01",
        "endDate": "2025-03-31",
        **root,
    }
    return {key: value for key, value in full_body.items() if value is not None}


def event(name: str = "click", at: Json = NOON, **fields: Json) -> dict[str, Json]:
    """Return an event for /track."""
    return {"name": name, "timestamp": at, **fields}


def send(service: Service, website: str, *events: Json, path: str = "/track") -> None:
    """Send items with an API key; the service must accept all of them."""
    response = service.post(
        f"{path}?website_id={website}", list(events), headers=bearer(service.master)
    )
    assert (response.status_code, response.json().get("count")) == (200, len(events)), response.text


def rows_of(response: requests.Response) -> list[Row]:
    """Return the rows of a response that must be successful."""
    assert response.status_code == 200, response.text
    rows: list[Row] = response.json()["data"]
    return rows


def selects_by_source(service: Service) -> dict[str, int]:
    """Return the number of selects per source of their result, since the service started."""
    start = 'headrace_selects_total{source="'
    lines = service.get("/metrics").text.splitlines()
    found = [line.removeprefix(start).split('"} ') for line in lines if line.startswith(start)]
    return {source: int(float(count)) for source, count in found}


def alike(got: Any, expected: Any) -> bool:
    """Compare JSON values exactly, except fractions: within 1e-9 relative; true is not 1."""
    if is_list(got) and is_list(expected):
        return len(got) == len(expected) and all(map(alike, got, expected))
    if is_object(got) and is_object(expected):
        same_keys = got.keys() == expected.keys()
        return same_keys and all(alike(value, expected[key]) for key, value in got.items())
    if isinstance(got, bool) or isinstance(expected, bool):
        return got is expected
    if isinstance(got, int | float) and isinstance(expected, int | float):
        return got == expected or (
            isinstance(got + expected, float) and math.isclose(got, expected, rel_tol=1e-9)
        )
    return bool(got == expected)
