"""Explore shows the rows of the oracle: as a table, as bars, as numbers."""

import json
from typing import Final

import pytest

from tests.e2e.page.oracle import shown_values as shown
from tests.e2e.page.oracle.known_page import (
    COUNT,
    DAYS,
    MARKS,
    SPAN,
    Json,
    KnownPage,
    Row,
    Texts,
    unique,
)
from tests.e2e.page.oracle.known_traffic import ZONE
from tests.oracle import Answer

pytestmark = MARKS

VISITORS: Final = unique("anonymous_id", "visitors")
QUERIES: Final[dict[str, Row]] = {
    "events of each path, with those before": {
        "query": {
            "table": "events",
            "selects": [COUNT, VISITORS, *SPAN],
            "groupBy": ["path"],
        },
        "compare": "previous_period",
        "totals": True,
    },
    "highest countries over time, and all others": {
        "query": {"table": "events", "selects": [COUNT], "groupBy": ["country"]},
        "granularity": "daily",
        "fill": True,
        "top": 3,
        "others": True,
        "totals": True,
    },
    "aggregates of own properties": {
        "query": {
            "table": "events",
            "selects": [
                {"field": "value", "aggregate": aggregate, "alias": aggregate}
                for aggregate in ("sum", "avg", "min", "max", "p50", "p95")
            ],
            "groupBy": ["properties.size"],
            "filters": [{"field": "event_name", "operator": "eq", "value": "purchase"}],
        },
    },
    "hours of the days around a change of summer time": {
        "query": {"table": "sessions", "selects": [COUNT, unique("entry_path", "entries")]},
        "startDate": "2025-11-01",
        "endDate": "2025-11-02",
        "granularity": "hourly",
        "compare": "previous_period",
        "fill": True,
    },
    "latest event of each country, whose bars are of the next number": {
        "query": {
            "table": "events",
            "selects": [SPAN[1], VISITORS],
            "groupBy": ["country"],
        },
        "compare": "previous_year",
    },
    "sessions of each referrer": {
        "query": {
            "table": "sessions",
            "selects": [
                {"field": "duration", "aggregate": "avg", "alias": "mean"},
                {"field": "page_views", "aggregate": "sum", "alias": "views"},
                COUNT,
            ],
            "groupBy": ["referrer", "device_type"],
        },
        "having": [{"field": "count", "operator": "gte", "value": 2}],
        "orderBy": [{"field": "mean", "direction": "desc"}],
    },
    "visitors in numbers": {
        "query": {
            "table": "profiles",
            "selects": [
                COUNT,
                {"field": "event_count", "aggregate": "avg", "alias": "events each"},
                {"field": "last_seen", "aggregate": "latest", "alias": "last"},
            ],
        },
        "compare": "previous_period",
    },
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_explore_answers_as_the_oracle_does(known: KnownPage, query: Row) -> None:
    body = {**DAYS, **query}
    answer = known.answer(body)

    known.open("explore", query=json.dumps(body), metric="table")

    assert known.table(".answer") == _answer_table(body, answer)
    assert known.texts(".truth span")[0] == [shown.counted(len(answer.rows), "row")]
    if "granularity" not in body:
        known.click(".answer [role=tab]:not([aria-selected=true])")
        assert known.texts(*_DRAWN) == _drawn(body, answer)
    assert known.page.problems() == []


def _answer_table(body: Row, answer: Answer) -> Texts:
    groups = body["query"].get("groupBy", [])
    names = [select["alias"] for select in body["query"]["selects"]]
    dates = ["date"] if "granularity" in body else []
    before = [f"{name} before" for name in names] if "compare" in body else []
    others: list[Row] = [
        {**row, **dict.fromkeys(groups, "all others")} for row in answer.others or []
    ]
    lines = [[*dates, *groups, *names, *before]]
    for row in [*answer.rows, *others]:
        line = [shown.bucket(row["date"], body["granularity"]) for _ in dates]
        line += [_group(name, row[name]) for name in groups]
        line += [_value(row[name]) for name in names]
        compared: Row = row.get("previous") or {}
        line += [_value(compared.get(name)) for name in names if before]
        lines.append(line)
    if answer.totals is not None:
        numbers = [_value(answer.totals[name]) for name in names]
        numbers += [_value(answer.totals["previous"][name]) for name in names if before]
        lines.append((["All rows"] + [""] * len(dates + groups))[: len(dates + groups)] + numbers)
    return lines


def _group(name: str, value: Json) -> str:
    return shown.country(value) if name == "country" and value else shown.cell(value)


def _value(value: Json) -> str:
    return shown.instant(value, ZONE) if isinstance(value, str) else shown.exact(value)


_DRAWN: Final = (
    ".ranked.tall li, .numbers > div",
    *("bdi", "small", "b"),
)


def _drawn(body: Row, answer: Answer) -> Texts:
    """Return the bars, or the numbers, beside those before."""
    groups = body["query"].get("groupBy", [])
    selects = body["query"]["selects"]
    if not groups:
        row, names = answer.rows[0], [select["alias"] for select in selects]
        return [[name, _was(row, name), _number(row[name])] for name in names]
    drawn = next(one["alias"] for one in selects if one["aggregate"] not in ("earliest", "latest"))
    return [
        [
            " · ".join(shown.group(name, row[name]) for name in groups),
            _was(row, drawn),
            _number(row[drawn]),
        ]
        for row in answer.rows[:40]
    ]


def _was(row: Row, name: str) -> str:
    if "previous" not in row:
        return ""
    return "new" if row["previous"] is None else f"was {_number(row['previous'][name])}"


def _number(value: Json) -> str:
    return shown.short(value) if not isinstance(value, str) else shown.instant(value, ZONE)
