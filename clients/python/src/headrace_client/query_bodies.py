"""The bodies of queries: options in snake_case become the fields that are sent."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict

from headrace_client.encoding import JSON_ENCODER


class RangeOptions(TypedDict, total=False):
    """The days of a query, with both ends: `start_date` and `end_date`, or `last_days`."""

    start_date: dt.date | str | None
    end_date: dt.date | str | None
    last_days: int | None
    timezone: str | None


class QueryOptions(RangeOptions, total=False):
    """What stands beside `query` in a custom query; the reference of the API describes each."""

    granularity: str | None
    limit: int | None
    offset: int | None
    order_by: Sequence[Mapping[str, str]] | None
    fill: bool | None
    having: Sequence[Mapping[str, object]] | None
    top: int | None
    others: bool | None
    compare: str | Mapping[str, object] | None
    totals: bool | None


class FunnelOptions(RangeOptions, total=False):
    """What stands beside the steps of a funnel; `window` is in seconds."""

    window: int | None
    by: str | None
    group_by: str | None


class RetentionOptions(RangeOptions, total=False):
    """What else a retention query takes."""

    by: str | None


class StandardOptions(RangeOptions, total=False):
    """What stands beside the types of standard queries."""

    filters: Sequence[Mapping[str, object]] | None
    granularity: str | None
    compare: str | Mapping[str, object] | None
    limit: int | None


class QueryRequest(NamedTuple):
    """A query as it is sent, for JSON or for Arrow."""

    path: str
    website: str
    body: bytes


_OPTIONS: Mapping[str, type] = {
    "custom": QueryOptions,
    "funnel": FunnelOptions,
    "retention": RetentionOptions,
    "standard": StandardOptions,
}


def make_request(
    kind: str,
    content: Mapping[str, object],
    website: str | None,
    options: Mapping[str, object],
) -> QueryRequest:
    """Return a query of a kind as it is sent. Raises `TypeError` for an unknown option."""
    if not website:
        raise ValueError("a query needs a website_id, here or when the client is made")
    unknown = options.keys() - _OPTIONS[kind].__annotations__.keys()
    if unknown:
        raise TypeError(f"a {kind} query has no option {min(unknown)!r}")
    given = {_wire_name(name): value for name, value in options.items() if value is not None}
    body = JSON_ENCODER.encode({**content, **given})
    return QueryRequest(f"/v1/query/{kind}", website, body)


def _wire_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
