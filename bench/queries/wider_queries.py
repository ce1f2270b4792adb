"""The other questions: as requests, and as an experienced ClickHouse user writes them in SQL.

Of funnels and retention there are two statements: the usual one, which answers less than the
service (`windowFunnel` has no median times, ignores arrival, and counts another attempt where
several begin), so its rows are not compared; and one with an equal answer, whose rows are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.queries.latency import MONTH, Rows

Answer = Mapping[str, Any]

RANGE = {"startDate": MONTH.first, "endDate": MONTH.last}
_TIMES = "time >= toDateTime64('{first}', 3, 'UTC') AND time < toDateTime64('{end}', 3, 'UTC')"
_MONTH = _TIMES.format(first=MONTH.first, end=MONTH.end)
_TWO_MONTHS = _TIMES.format(first="2026-01-29", end=MONTH.end)
_ROWS = f"website_id = '{{website}}' AND {_MONTH} AND NOT is_bot"
_IN_MONTH = f"time >= toDateTime64('{MONTH.first}', 3, 'UTC')"
_COUNT = {"field": "*", "aggregate": "count", "alias": "n"}
_VISITORS = {"field": "anonymous_id", "aggregate": "uniq", "alias": "n"}
_PURCHASE = {"field": "event_name", "operator": "eq", "value": "purchase"}
_UNIQ = "uniqExactIf(anonymous_id, anonymous_id != '')"


class WiderQuery(NamedTuple):
    """A request, how its rows are read, and the equivalent statements.

    `rows` is None where the statements answer less than the service. `path` is below /v1/query;
    `body` is None for the parameters of a GET in `path`.
    """

    name: str
    path: str
    body: Mapping[str, Any] | None
    statements: Sequence[str]
    rows: Callable[[Answer], Rows] | None


def _columns(*names: str) -> Callable[[Answer], Rows]:
    return lambda answer: [[row[name] for name in names] for row in answer["data"]]


def _custom(query: Mapping[str, Any], **root: object) -> Mapping[str, Any]:
    return {"query": {"table": "events", **query}, **RANGE, **root}


def _compared(answer: Answer) -> Rows:
    return [
        [row["country"], row["n"], row["previous"] and row["previous"]["n"]]
        for row in answer["data"]
    ]


def _with_totals(answer: Answer) -> Rows:
    return [*([row["country"], row["n"]] for row in answer["data"]), ["", answer["totals"]["n"]]]


def _with_others(answer: Answer) -> Rows:
    rows = [*answer["data"], *answer["others"]]
    return [[row["date"], row["path"], row["n"]] for row in rows]


def _of_all_types(answer: Answer) -> Rows:
    data: Mapping[str, Sequence[Mapping[str, Any]]] = answer["data"]
    return [list(row.values()) for rows in data.values() for row in rows]


def _step(name: str) -> Mapping[str, Any]:
    return {"filters": [{"field": "event_name", "operator": "eq", "value": name}]}


_STEPS = ("screen_view", "purchase")
_LONG_STEPS = ("screen_view", "button_click", "add_to_cart", "purchase")
_FUNNEL: Mapping[str, Any] = {"steps": [_step(name) for name in _STEPS], **RANGE}
_RETENTION: Mapping[str, Any] = {
    "first": {"filters": []},
    "return": {"filters": []},
    "granularity": "weekly",
    "periods": 4,
    **RANGE,
}
_UNTIL_RETURNS = (
    f"website_id = '{{website}}' AND {_TIMES.format(first=MONTH.first, end='2026-04-27')}"
    " AND NOT is_bot AND anonymous_id != ''"
)


def _window_funnel(*names: str) -> str:
    conditions = [f"event_name = '{name}'" for name in names]
    return (
        "SELECT level, count() FROM (SELECT windowFunnel(86400000)(toUInt64("
        f"toUnixTimestamp64Milli(time)), {', '.join(conditions)}) AS level FROM events"
        f" WHERE {_ROWS} AND anonymous_id != '' AND ({' OR '.join(conditions)})"
        " GROUP BY anonymous_id) GROUP BY level"
    )


_EQUAL_FUNNEL = (
    "SELECT count(), countIf(done > 0), quantileExactInclusiveIf(0.5)(done - began, done > 0)"
    " / 1000 FROM (SELECT done, arrayFirst((time, view) -> view AND time + 86400000 >= done,"
    " times, views) AS began FROM (SELECT *, arrayFirst((time, view, start) -> NOT view"
    " AND start > 0 AND start + 86400000 >= time, times, views,"
    " arrayPushFront(arrayPopBack(arrayFill(start -> start > 0,"
    " arrayMap((time, view) -> if(view, time, 0), times, views))), toInt64(0))) AS done"
    " FROM (SELECT hits.1 AS times, hits.3 AS views FROM (SELECT arraySort(groupArray(("
    "toUnixTimestamp64Milli(time), id, event_name = 'screen_view'))) AS hits FROM events"
    f" WHERE {_ROWS} AND anonymous_id != '' AND event_name IN ('screen_view', 'purchase')"
    " GROUP BY anonymous_id HAVING countIf(event_name = 'screen_view') > 0))))"
)


def _reaches(step: int) -> str:
    """The latest start of an attempt that reaches a step with each hit, 0 where none does."""
    before = f"arrayFill(start -> start > 0, starts{step - 1})"
    return (
        f"arrayMap((time, step, start) -> if(step = {step} AND start + 86400000 >= time, start, 0),"
        f" times, steps, arrayPushFront(arrayPopBack({before}), toInt64(0))) AS starts{step}"
    )


def _first_after(step: int) -> str:
    """The position of the earliest hit of a step after that of the step before."""
    return (
        f"arrayFirstIndex((step, at) -> step = {step} AND at > at{step - 1}, steps,"
        f" arrayEnumerate(steps)) AS at{step}"
    )


_EQUAL_LONG_FUNNEL = (
    "SELECT count(), {results} FROM (SELECT times, level, at1, {positions} FROM"
    " (SELECT times, steps, level, arrayFirstIndex((time, step) -> step = 1 AND"
    " time + 86400000 >= done, times, steps) AS at1 FROM (SELECT times, steps,"
    " arrayMax(arrayMap((found, step) -> if(found > 0, step, 1), ends, [2, 3, 4])) AS level,"
    " if(level = 1, times[indexOf(steps, 1)], ends[level - 1]) AS done FROM"
    " (SELECT times, steps, arrayMap((time, step) -> if(step = 1, time, 0), times, steps) AS"
    " starts1, {reaches}, {ends} FROM"
    " (SELECT hits.1 AS times, hits.3 AS steps FROM (SELECT arraySort(groupArray(("
    "toUnixTimestamp64Milli(time), id, indexOf({names}, event_name)))) AS hits FROM events"
    f" WHERE {_ROWS} AND anonymous_id != '' AND event_name IN {{names}}"
    " GROUP BY anonymous_id HAVING countIf(event_name = {names}[1]) > 0))))))"
).format(
    results=", ".join(
        f"countIf(level >= {step}), quantileExactInclusiveIf(0.5)(times[at{step}] - times[at1],"
        f" level >= {step}) / 1000"
        for step in (2, 3, 4)
    ),
    positions=", ".join(_first_after(step) for step in (2, 3, 4)),
    reaches=", ".join(_reaches(step) for step in (2, 3, 4)),
    ends="[{}] AS ends".format(
        ", ".join(
            f"arrayFirst((time, start) -> start > 0, times, starts{step})" for step in (2, 3, 4)
        )
    ),
    names=list(_LONG_STEPS),
    website="{website}",
)


def _counts_and_medians(answer: Answer) -> Rows:
    first, *others = answer["data"]
    values = ((step["count"], step["medianSeconds"]) for step in others)
    return [[first["count"], *(value for pair in values for value in pair)]]


QUERIES: tuple[WiderQuery, ...] = (
    WiderQuery(
        "compare with the period before",
        "custom",
        _custom({"selects": [_COUNT], "groupBy": ["country"]}, compare="previous_period"),
        (
            (
                f"SELECT country, countIf({_IN_MONTH}) AS n, nullIf(countIf(NOT {_IN_MONTH}), 0)"
                f" FROM events WHERE website_id = '{{website}}' AND {_TWO_MONTHS} AND NOT is_bot"
                " GROUP BY country HAVING n > 0 ORDER BY n DESC, country LIMIT 1000"
            ),
        ),
        _compared,
    ),
    WiderQuery(
        "exact visitors by country, with totals",
        "custom",
        _custom({"selects": [_VISITORS], "groupBy": ["country"]}, totals=True),
        (
            (
                f"SELECT country, {_UNIQ} AS n FROM events WHERE {_ROWS} GROUP BY GROUPING SETS"
                " ((country), ()) ORDER BY grouping(country), n DESC, country LIMIT 1001"
            ),
        ),
        _with_totals,
    ),
    WiderQuery(
        "the top five pages by day, and others",
        "custom",
        _custom(
            {"selects": [_COUNT], "groupBy": ["path"]}, granularity="daily", top=5, others=True
        ),
        (
            (
                f"WITH (SELECT groupArray(path) FROM (SELECT path FROM events"
                f" WHERE {_ROWS} GROUP BY"
                " path ORDER BY count() DESC, path LIMIT 5)) AS best SELECT toString(toDate(time,"
                " 'UTC')) AS day, if(has(best, path), path, NULL) AS page, count() AS n FROM events"
                f" WHERE {_ROWS} GROUP BY day, page ORDER BY isNull(page), day, n DESC, page"
            ),
        ),
        _with_others,
    ),
    WiderQuery(
        "purchases and visits by campaign (filtered selects)",
        "custom",
        _custom(
            {
                "selects": [_COUNT, {**_COUNT, "alias": "orders", "filters": [_PURCHASE]}],
                "groupBy": ["utm_campaign"],
            }
        ),
        (
            (
                "SELECT utm_campaign, count() AS n, countIf(event_name = 'purchase') FROM events"
                f" WHERE {_ROWS} GROUP BY utm_campaign ORDER BY n DESC, utm_campaign LIMIT 1000"
            ),
        ),
        _columns("utm_campaign", "n", "orders"),
    ),
    WiderQuery(
        "a group of filters, and having",
        "custom",
        _custom(
            {
                "selects": [_COUNT],
                "groupBy": ["path"],
                "filters": [
                    {
                        "or": [
                            {"field": "country", "operator": "eq", "value": "DE"},
                            {"field": "device_type", "operator": "eq", "value": "mobile"},
                        ]
                    }
                ],
            },
            having=[{"field": "n", "operator": "gt", "value": 100}],
        ),
        (
            (
                f"SELECT path, count() AS n FROM events WHERE {_ROWS} AND (country = 'DE' OR"
                " device_type = 'mobile') GROUP BY path HAVING n > 100 ORDER BY n DESC, path LIMIT"
                " 1000"
            ),
        ),
        _columns("path", "n"),
    ),
    WiderQuery("funnel of two steps", "funnel", _FUNNEL, (_window_funnel(*_STEPS),), None),
    WiderQuery(
        "funnel of two steps, equal answer",
        "funnel",
        _FUNNEL,
        (_EQUAL_FUNNEL,),
        _counts_and_medians,
    ),
    WiderQuery(
        "funnel of four steps",
        "funnel",
        {"steps": [_step(name) for name in _LONG_STEPS], **RANGE},
        (_window_funnel(*_LONG_STEPS),),
        None,
    ),
    WiderQuery(
        "funnel of four steps, equal answer",
        "funnel",
        {"steps": [_step(name) for name in _LONG_STEPS], **RANGE},
        (_EQUAL_LONG_FUNNEL,),
        _counts_and_medians,
    ),
    WiderQuery(
        "weekly retention of four periods",
        "retention",
        _RETENTION,
        (
            (
                "SELECT cohort, count(), sumForEach(arrayMap(week -> has(weeks, cohort + 7 * week),"
                " range(4))) FROM (SELECT toMonday(min(time)) AS cohort,"
                " groupUniqArray(toMonday(time))"
                f" AS weeks FROM events WHERE {_UNTIL_RETURNS}"
                " GROUP BY anonymous_id) GROUP BY cohort ORDER BY cohort"
            ),
        ),
        None,
    ),
    WiderQuery(
        "weekly retention of four periods, equal answer",
        "retention",
        _RETENTION,
        (
            (
                "SELECT toString(cohort), count(), sumForEach(arrayMap(week -> has(weeks, cohort"
                " + 7 * week), range(4))) FROM (SELECT toMonday(times[1]) AS cohort,"
                " arrayDistinct(arrayMap(one -> toMonday(one), arrayPopFront(times))) AS weeks FROM"
                f" (SELECT arraySort(groupArray(time)) AS times FROM events WHERE {_UNTIL_RETURNS}"
                f" GROUP BY anonymous_id HAVING toDate(times[1]) <= '{MONTH.last}'))"
                " GROUP BY cohort ORDER BY cohort"
            ),
        ),
        _columns("date", "size", "returned"),
    ),
    WiderQuery(
        "weekly retention of who signed up",
        "retention",
        {**_RETENTION, "first": _step("signup_completed")},
        (
            (
                "SELECT cohort, count(), sumForEach(arrayMap(week -> has(weeks, cohort + 7 * week),"
                " range(4))) FROM (SELECT toMonday(minIf(time, event_name = 'signup_completed'))"
                " AS cohort, groupUniqArray(toMonday(time)) AS weeks"
                f" FROM events WHERE {_UNTIL_RETURNS} GROUP BY anonymous_id"
                " HAVING countIf(event_name = 'signup_completed') > 0)"
                " GROUP BY cohort ORDER BY cohort"
            ),
        ),
        None,
    ),
    WiderQuery(
        "weekly retention of who signed up, equal answer",
        "retention",
        {**_RETENTION, "first": _step("signup_completed")},
        (
            (
                "SELECT toString(cohort), count(), sumForEach(arrayMap(week -> has(weeks, cohort"
                " + 7 * week), range(4))) FROM (SELECT toMonday(hits[first].1) AS cohort,"
                " arrayDistinct(arrayMap(hit -> toMonday(hit.1), arraySlice(hits, first + 1)))"
                " AS weeks FROM (SELECT arraySort(groupArray((time, id, event_name ="
                " 'signup_completed'))) AS hits, arrayFirstIndex(hit -> hit.3 AND toDate(hit.1) <="
                f" '{MONTH.last}', hits) AS first FROM events WHERE {_UNTIL_RETURNS}"
                " GROUP BY anonymous_id HAVING first > 0)) GROUP BY cohort ORDER BY cohort"
            ),
        ),
        _columns("date", "size", "returned"),
    ),
    WiderQuery(
        "values of a column that contain a text",
        "values?table=events&field=path&search=Ridge&startDate={first}&endDate={last}",
        None,
        (
            (
                f"SELECT path, count() AS n FROM events WHERE {_ROWS} AND path != '' AND"
                " positionCaseInsensitiveUTF8(path, 'Ridge') > 0 GROUP BY"
                " path ORDER BY n DESC, path"
                " LIMIT 100"
            ),
        ),
        _columns("value", "count"),
    ),
    WiderQuery(
        "standard: summary",
        "standard",
        {"types": ["summary"], **RANGE},
        (
            (
                f"SELECT {_UNIQ}, countIf(event_name IN ('screen_view', 'pageview', 'page_view')),"
                f" count() FROM events WHERE {_ROWS}"
            ),
            (
                "SELECT count(), countIf(views <= 1 AND ms < 10000),"
                " quantileExactInclusive(0.5)(ms) /"
                " 1000 FROM (SELECT min(time) AS started,"
                " dateDiff('millisecond', started, max(time))"
                " AS ms, countIf(event_name IN ('screen_view', 'pageview',"
                " 'page_view')) AS views FROM"
                " events WHERE website_id = '{website}' AND NOT is_bot AND session_id != '' AND"
                f" session_id IN (SELECT session_id FROM events WHERE {_ROWS} AND session_id != '')"
                f" GROUP BY session_id HAVING {_MONTH.replace('time', 'started')})"
            ),
        ),
        None,
    ),
    WiderQuery(
        "standard: countries and devices",
        "standard",
        {"types": ["countries", "devices"], **RANGE},
        tuple(
            f"SELECT {column}, {_UNIQ} AS n, count() FROM events WHERE {_ROWS} AND {column} != ''"
            f" GROUP BY {column} ORDER BY n DESC, {column} LIMIT 10"
            for column in ("country", "device_type")
        ),
        _of_all_types,
    ),
)
