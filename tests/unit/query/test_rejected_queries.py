"""Every rejection of a well-formed query, with its code, its full message and its precedence."""

from itertools import combinations
from typing import Any

import pytest

from headrace.http.endpoints import QUERY
from testing.queries import (
    COUNT,
    filtering,
    in_groups,
    query_body,
    rejection_of,
    select,
    selecting,
    where,
)

Body = dict[str, Any]

PATH = where("path", "eq", "/")
EMPTY: dict[str, Any] = {}
NOTHING: list[Any] = []
TOP_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"top": 0, "others": 1}, ": must be a whole number from 1 to 100"),
    ({"top": 101}, ": must be a whole number from 1 to 100"),
    ({"top": "5"}, ": must be a whole number from 1 to 100"),
    ({"top": True}, ": must be a whole number from 1 to 100"),
    ({"top": 5, "granularity": None}, ": requires groupBy and a granularity"),
    ({"others": True, "compare": "x"}, ": others requires top"),
    ({"top": 5, "others": "yes", "compare": "x"}, ": others must be true or false"),
]

COMPARE_FAULTS: list[tuple[Any, str]] = [
    (5, ': must be "previous_period" or "previous_year", or an object with dates'),
    ("previous-year", ' "previous-year" (did you mean "previous_year"?)'),
    ("", ' "" (one of previous_period, previous_year)'),
    ({}, ": startDate: a date such as 2026-01-31 is required"),
    ({"startDate": "2025-01-01"}, ": endDate: a date such as 2026-01-31 is required"),
    (
        {"startDate": "2025-02-01", "endDate": "2025-01-01"},
        ': endDate "2025-01-01": must not be before startDate',
    ),
]

HAVING_FAULTS: tuple[tuple[Any, str], ...] = (
    (5, ": must be an array of objects with field, operator and value"),
    ([NOTHING], ": must be an array of objects with field, operator and value"),
    ([EMPTY] * 11, ": 11 conditions given, maximum is 10"),
    ([EMPTY], " in having[0]: field must be the output name of a select"),
    ([{"field": "nn"}], ' "nn" in having[0]: no select has this name (did you mean "n"?)'),
    ([{"field": "n"}], " in having[0]: operator must be one of eq, ne, gt, lt, gte, lte"),
    (
        [where("n", "gt", 1), where("n", "gtt", 1)],
        ' in having[1]: operator "gtt" (did you mean "gt"?)',
    ),
    ([where("n", "gt", True)], ' in having[0]: value for "n" must be a number'),
    ([where("n", "gt", 10**400)], ' in having[0]: value for "n" must be a number'),
)


REJECTIONS = [
    pytest.param(
        query_body(table="event"),
        "INVALID_TABLE",
        'Invalid table "event" (did you mean "events"?)',
        id="table",
    ),
    pytest.param(
        query_body(table="Funnels"),
        "INVALID_TABLE",
        'Invalid table "Funnels" (one of events, sessions, profiles, errors, error_spans,'
        " performance, web_vitals_spans)",
        id="table that is close to none",
    ),
    pytest.param(
        {**query_body(), "query": {"table": "events", "selects": []}},
        "INVALID_SELECT",
        "Invalid select: at least one is required",
        id="no selects",
    ),
    pytest.param(
        query_body(*[select("*", "count", f"n{n}") for n in range(11)]),
        "TOO_MANY_SELECTS",
        "Too many selects: 11 given, maximum is 10",
        id="11 selects",
    ),
    pytest.param(
        selecting("pth", "uniq"),
        "INVALID_COLUMN",
        'Invalid column "pth" for table "events" (did you mean "path"?)',
        id="column of a select",
    ),
    pytest.param(
        selecting("zzz", "uniq", table="error_spans"),
        "INVALID_COLUMN",
        'Invalid column "zzz" for table "errors"',
        id="column that is close to none",
    ),
    pytest.param(
        selecting("properties", "uniq"),
        "INVALID_COLUMN",
        'Invalid column "properties" for table "events" (did you mean "properties.KEY"?)',
        id="properties without KEY",
    ),
    pytest.param(
        selecting("properties.", "uniq"),
        "INVALID_COLUMN",
        'Invalid column "properties." for table "events" (did you mean "properties.KEY"?)',
        id="empty KEY",
    ),
    pytest.param(
        selecting(f"properties.{'k' * 257}", "uniq"),
        "INVALID_COLUMN",
        f'Invalid column "properties.{"k" * 89}…" for table "events"',
        id="KEY of 257",
    ),
    pytest.param(
        selecting("properties.plan", "uniq", table="sessions"),
        "INVALID_COLUMN",
        'Invalid column "properties.plan" for table "sessions"'
        ' (properties are columns of "events")',
        id="properties of a table that has none",
    ),
    *[
        pytest.param(
            selecting(name, "uniq"),
            "INVALID_COLUMN",
            f'Invalid column "{name}" for table "events"{hint}',
            id=f"property {name!r} without its prefix",
        )
        for name, hint in (
            ("plan", ' (a property is "properties.plan")'),
            ("props.plan", ' (a property is "properties.plan")'),
            ("property.plan.name", ' (a property is "properties.plan.name")'),
            ("", ""),
        )
    ],
    pytest.param(
        query_body(COUNT, select("path", "cuont")),
        "INVALID_AGGREGATE",
        'Invalid aggregate "cuont" in query.selects[1] (did you mean "count"?)',
        id="aggregate",
    ),
    pytest.param(
        selecting("*", "stddev"),
        "INVALID_AGGREGATE",
        'Invalid aggregate "stddev" in query.selects[0] (one of count, uniq, sum, avg, max, min,'
        " p50, p75, p90, p95, p99,"
        " earliest, latest, good_share, needs_improvement_share, poor_share)",
        id="aggregate that is close to none",
    ),
    pytest.param(
        selecting("path", "sum"),
        "NOT_AGGREGATABLE",
        'Column not aggregatable "path" for table "events" in query.selects[0]'
        ': sum is for measures, such as "value"',
        id="sum of texts",
    ),
    pytest.param(
        selecting("lineno", "avg", table="errors"),
        "NOT_AGGREGATABLE",
        'Column not aggregatable "lineno" for table "errors" in query.selects[0]'
        ": avg is for measures, and it has none",
        id="numbers of a table without measures",
    ),
    pytest.param(
        selecting("*", "uniq"),
        "NOT_AGGREGATABLE",
        'Column not aggregatable "*" in query.selects[0]: it takes only count, uniq needs a column',
        id="uniq of rows",
    ),
    pytest.param(
        selecting("*", "count", ""),
        "INVALID_SELECT",
        'Invalid select in query.selects[0]: alias "" must have 1 to 64 characters',
        id="empty alias",
    ),
    pytest.param(
        selecting("*", "count", "a" * 65),
        "INVALID_SELECT",
        f'Invalid select in query.selects[0]: alias "{"a" * 65}" must have 1 to 64 characters',
        id="alias of 65",
    ),
    pytest.param(
        query_body(COUNT, select("path", "uniq", "n")),
        "DUPLICATE_OUTPUT_NAME",
        'Duplicate output name "n"',
        id="two aliases",
    ),
    pytest.param(
        query_body(select("*", "count"), select("path", "uniq", "count_all")),
        "DUPLICATE_OUTPUT_NAME",
        'Duplicate output name "count_all"',
        id="alias and default alias",
    ),
    pytest.param(
        query_body(select("properties.a.b", "sum"), select("properties.a_b", "sum")),
        "DUPLICATE_OUTPUT_NAME",
        'Duplicate output name "sum_properties_a_b"',
        id="two default aliases",
    ),
    pytest.param(
        query_body(select("*", "count", "path"), group_by=["path"]),
        "DUPLICATE_OUTPUT_NAME",
        'Duplicate output name "path"',
        id="alias and group",
    ),
    pytest.param(
        query_body(group_by=["path", "path"]),
        "DUPLICATE_OUTPUT_NAME",
        'Duplicate output name "path"',
        id="two groups",
    ),
    pytest.param(
        selecting("*", "count", "date", granularity="daily"),
        "DUPLICATE_OUTPUT_NAME",
        'Duplicate output name "date"',
        id="alias and date",
    ),
    pytest.param(
        query_body(filters=[where("path", "eq", "/")] * 21),
        "TOO_MANY_FILTERS",
        "Too many filters in query.filters: 21 given, maximum is 20",
        id="21 filters",
    ),
    pytest.param(
        filtering("*", "eq", "/"),
        "INVALID_COLUMN",
        'Invalid column "*" for table "events"',
        id="star in a filter",
    ),
    pytest.param(
        filtering("stack", "eq", "x", table="errors"),
        "NOT_FILTERABLE",
        'Column not filterable "stack" for table "errors" in query.filters[0]',
        id="column that is not filterable",
    ),
    pytest.param(
        query_body(filters=[PATH, PATH, where("path", "startswith", "/")]),
        "INVALID_OPERATOR",
        'Invalid operator "startswith" in query.filters[2] (did you mean "starts_with"?)',
        id="operator",
    ),
    pytest.param(
        filtering("path", "@", "/"),
        "INVALID_OPERATOR",
        'Invalid operator "@" in query.filters[0]'
        " (one of eq, ne, gt, lt, gte, lte, contains, not_contains,"
        " starts_with, not_starts_with, ends_with, not_ends_with, matches, not_matches, in, not_in,"
        " is_set, is_not_set)",
        id="operator that is close to none",
    ),
    pytest.param(
        filtering("value", "contains", "1"),
        "INVALID_OPERATOR",
        'Invalid operator "contains" for column "value" in query.filters[0]: it is a number',
        id="contains on a number",
    ),
    pytest.param(
        filtering("time", "starts_with", "2026"),
        "INVALID_OPERATOR",
        'Invalid operator "starts_with" for column "time" in query.filters[0]: it is a datetime',
        id="starts_with on a datetime",
    ),
    pytest.param(
        filtering("is_bot", "gt", True),
        "INVALID_OPERATOR",
        'Invalid operator "gt" for column "is_bot" in query.filters[0]: it is a boolean',
        id="gt on a boolean",
    ),
    pytest.param(
        filtering("properties.k", "lte", True),
        "INVALID_OPERATOR",
        'Invalid operator "lte" for column "properties.k" in query.filters[0]'
        ": true and false have no order",
        id="order of a boolean property",
    ),
    pytest.param(
        filtering("path", "eq", None),
        "INVALID_VALUE",
        'Invalid value null for column "path" in query.filters[0]: must be a string',
        id="null",
    ),
    pytest.param(
        filtering("path", "eq", 5),
        "INVALID_VALUE",
        'Invalid value 5 for column "path" in query.filters[0]: must be a string',
        id="number for a text",
    ),
    pytest.param(
        filtering("path", "in", ["/", True]),
        "INVALID_VALUE",
        'Invalid value true for column "path" in query.filters[0]: must be a string',
        id="boolean in an array of texts",
    ),
    pytest.param(
        filtering("path", "eq", ["/"]),
        "INVALID_VALUE",
        'Invalid value for column "path" in query.filters[0]'
        ": eq takes a single value, not an array; in takes one",
        id="array for eq",
    ),
    pytest.param(
        filtering("path", "not_in", "/"),
        "INVALID_VALUE",
        'Invalid value for column "path" in query.filters[0]'
        ": not_in takes an array of values; ne takes a single one",
        id="scalar for not_in",
    ),
    pytest.param(
        filtering("path", "in", []),
        "INVALID_VALUE",
        'Invalid value for column "path" in query.filters[0]: the array is empty',
        id="empty array",
    ),
    pytest.param(
        filtering("path", "in", ["/"] * 1001),
        "INVALID_VALUE",
        'Invalid value for column "path" in query.filters[0]: 1001 values given, maximum is 1000',
        id="1001 values",
    ),
    pytest.param(
        filtering("value", "gt", "5 EUR"),
        "INVALID_VALUE",
        'Invalid value "5 EUR" for column "value" in query.filters[0]: must be a number',
        id="text for a number",
    ),
    pytest.param(
        filtering("is_bot", "eq", 1),
        "INVALID_VALUE",
        'Invalid value 1 for column "is_bot" in query.filters[0]: must be true or false',
        id="number for a boolean",
    ),
    pytest.param(
        filtering("time", "gt", "yesterday"),
        "INVALID_VALUE",
        'Invalid value "yesterday" for column "time" in query.filters[0]:'
        " must be an ISO 8601 date or time or epoch milliseconds",
        id="text for a datetime",
    ),
    pytest.param(
        filtering("properties.k", "eq", None),
        "INVALID_VALUE",
        'Invalid value null for column "properties.k" in query.filters[0]'
        ": must be a string, a number, true or false",
        id="null for a property",
    ),
    pytest.param(
        filtering("properties.k", "contains", 5),
        "INVALID_VALUE",
        'Invalid value 5 for column "properties.k" in query.filters[0]: contains requires a string',
        id="number that a property is to contain",
    ),
    pytest.param(
        query_body(select("path", "latest")),
        "NOT_AGGREGATABLE",
        'Column not aggregatable "path" for table "events" in query.selects[0]'
        ": latest is for datetimes, such as"
        ' "received_at"',
        id="latest text",
    ),
    pytest.param(
        query_body(select("value", "good_share")),
        "NOT_AGGREGATABLE",
        'Column not aggregatable "value" for table "events" in query.selects[0]'
        ": good_share is for web vitals, and it"
        " has none",
        id="good share of revenue",
    ),
    pytest.param(
        query_body(select("time", "latest", "last"), having=[where("last", "gt", 1)]),
        "INVALID_HAVING",
        'Invalid having "last" in having[0]: it is a datetime, not a number',
        id="having on a datetime",
    ),
    *[
        pytest.param(
            query_body(having=having), "INVALID_HAVING", f"Invalid having{detail}", id=detail
        )
        for having, detail in HAVING_FAULTS
    ],
    pytest.param(
        query_body(having=[where("n", "gt", 1)], fill=True, granularity="daily"),
        "INVALID_FILL",
        "Invalid fill: not possible together with having",
        id="fill with having",
    ),
    *[
        pytest.param(
            {**query_body(group_by=["path"], granularity="daily"), **root},
            "INVALID_TOP",
            f"Invalid top{detail}",
            id=f"{root}",
        )
        for root, detail in TOP_FAULTS
    ],
    *[
        pytest.param(
            query_body(compare=compare), "INVALID_COMPARE", f"Invalid compare{detail}", id=detail
        )
        for compare, detail in COMPARE_FAULTS
    ],
    pytest.param(
        {**query_body(select("path", "uniq", "previous")), "compare": "previous_year"},
        "DUPLICATE_OUTPUT_NAME",
        'Duplicate output name "previous"',
        id="an output called previous",
    ),
    pytest.param(
        {
            **query_body(select("path", "uniq", "previous.n"), COUNT),
            "compare": "previous_year",
        },
        "DUPLICATE_OUTPUT_NAME",
        'Duplicate output name "previous.n"',
        id="an output called like the compared values of another",
    ),
    pytest.param(
        query_body(compare="previous_year", orderBy=[{"field": "previous.n"}]),
        "INVALID_ORDER_BY",
        'Invalid orderBy "previous.n" in orderBy[0]: no output has this name (one of n)',
        id="order by the compared values of an output",
    ),
    pytest.param(
        query_body(compare="previous_year", orderBy=[{"field": "previous"}]),
        "INVALID_ORDER_BY",
        'Invalid orderBy "previous" in orderBy[0]: no output has this name (one of n)',
        id="order by what is compared",
    ),
    pytest.param(
        query_body(totals=1),
        "INVALID_TOTALS",
        "Invalid totals: must be true or false",
        id="totals that are no boolean",
    ),
    pytest.param(
        query_body(lastDays=7),
        "INVALID_START_DATE",
        "Invalid startDate: lastDays is in the place of startDate and endDate",
        id="dates and lastDays",
    ),
    pytest.param(
        query_body(lastDays=3653, startDate=None, endDate=None),
        "INVALID_LAST_DAYS",
        "Invalid lastDays: must be a whole number from 1 to 3652",
        id="too many last days",
    ),
    pytest.param(
        query_body(select("*", "count", "all"), {**COUNT, "filters": [PATH] * 6}),
        "TOO_MANY_FILTERS",
        "Too many filters in query.selects[1].filters: 6 given, maximum is 5",
        id="six filters of a select",
    ),
    pytest.param(
        query_body({**COUNT, "filters": [PATH, {"or": [PATH]}]}),
        "INVALID_FILTER",
        "Invalid filter in query.selects[0].filters[1]: a select takes single filters, not groups",
        id="group in a select",
    ),
    pytest.param(
        query_body({**COUNT, "filters": [where("pth", "eq", "/")]}, COUNT),
        "INVALID_COLUMN",
        'Invalid column "pth" for table "events" (did you mean "path"?)',
        id="column in a select's filter",
    ),
    pytest.param(
        filtering("path", "matches", "/(a"),
        "INVALID_VALUE",
        'Invalid value "/(a" for column "path" in query.filters[0]'
        ": it is not a regular expression of RE2"
        " (missing ): /(a)",
        id="pattern that is no regular expression",
    ),
    pytest.param(
        filtering("properties.k", "not_matches", "a" * 257),
        "INVALID_VALUE",
        f'Invalid value "{"a" * 100}…" for column "properties.k" in query.filters[0]'
        ": a pattern has at most 256"
        " characters",
        id="long pattern",
    ),
    pytest.param(
        filtering("path", "is_set", "/"),
        "INVALID_VALUE",
        'Invalid value for column "path" in query.filters[0]: is_set takes no value',
        id="value of is_set",
    ),
    pytest.param(
        filtering("path", "is_not_set", [None]),
        "INVALID_VALUE",
        'Invalid value for column "path" in query.filters[0]: is_not_set takes no value',
        id="array for is_not_set",
    ),
    pytest.param(
        query_body(filters=[{"and": [{"or": [PATH] * 11}, *[PATH] * 10]}]),
        "TOO_MANY_FILTERS",
        "Too many filters in query.filters: 21 given, maximum is 20",
        id="21 filters within groups",
    ),
    pytest.param(
        query_body(filters=[PATH, {"or": []}]),
        "INVALID_FILTER",
        "Invalid filter in query.filters[1].or: a group has at least one filter",
        id="empty group",
    ),
    pytest.param(
        query_body(filters=[in_groups(PATH, 4)]),
        "INVALID_FILTER",
        "Invalid filter in query.filters[0].or[0].or[0].or[0].or: groups are at most 3 deep",
        id="four groups within each other",
    ),
    pytest.param(
        query_body(filters=[{"or": [PATH], "and": [PATH]}]),
        "INVALID_FILTER",
        'Invalid filter in query.filters[0]: a group has exactly one key, "or" or "and"',
        id="group with two keys",
    ),
    pytest.param(
        query_body(filters=[{"and": [{"or": [PATH], "field": "path"}]}]),
        "INVALID_FILTER",
        'Invalid filter in query.filters[0].and[0]: a group has exactly one key, "or" or "and"',
        id="group with a key of a filter",
    ),
    pytest.param(
        query_body(filters=[{"or": [PATH, {"and": [where("pth", "eq", "/")]}]}]),
        "INVALID_COLUMN",
        'Invalid column "pth" for table "events" (did you mean "path"?)',
        id="column within a group",
    ),
    pytest.param(
        query_body(group_by=["path", "url", "title", "city", "region", "country"]),
        "TOO_MANY_GROUP_BY",
        "Too many groupBy: 6 given, maximum is 5",
        id="6 groups",
    ),
    pytest.param(
        query_body(group_by=["*"]),
        "INVALID_COLUMN",
        'Invalid column "*" for table "events"',
        id="star in groupBy",
    ),
    pytest.param(
        query_body(group_by=["entrypath"], table="sessions"),
        "INVALID_COLUMN",
        'Invalid column "entrypath" for table "sessions" (did you mean "entry_path"?)',
        id="column of groupBy",
    ),
    pytest.param(
        query_body(startDate=None),
        "INVALID_START_DATE",
        "Invalid startDate: a date such as 2026-01-31 is required",
        id="no startDate",
    ),
    pytest.param(
        query_body(startDate=20260101),
        "INVALID_START_DATE",
        "Invalid startDate: must be a date in a string, such as 2026-01-31",
        id="number for startDate",
    ),
    pytest.param(
        query_body(startDate="1.1.2026"),
        "INVALID_START_DATE",
        'Invalid startDate "1.1.2026": must be a date such as 2026-01-31',
        id="startDate of another format",
    ),
    *[
        pytest.param(
            query_body(**{name: value}),
            code,
            f'Invalid {name} "{value}": must be a date such as 2026-01-31; lastDays takes a number'
            " of days up to today",
            id=f"{name} {value}",
        )
        for name, code, value in (
            ("startDate", "INVALID_START_DATE", "last_7_days"),
            ("startDate", "INVALID_START_DATE", "-30d"),
            ("endDate", "INVALID_END_DATE", "today"),
            ("endDate", "INVALID_END_DATE", "now-1d"),
        )
    ],
    pytest.param(
        query_body(startDate="x", endDate="today"),
        "INVALID_START_DATE",
        'Invalid startDate "x": must be a date such as 2026-01-31',
        id="startDate before an endDate as seen from today",
    ),
    pytest.param(
        query_body(startDate="2026-Mar-01"),
        "INVALID_START_DATE",
        'Invalid startDate "2026-Mar-01": must be a date such as 2026-01-31',
        id="name of a month",
    ),
    pytest.param(
        query_body(startDate="2026-02-29"),
        "INVALID_START_DATE",
        'Invalid startDate "2026-02-29": there is no such day',
        id="impossible startDate",
    ),
    pytest.param(
        query_body(endDate=True),
        "INVALID_END_DATE",
        "Invalid endDate: must be a date in a string, such as 2026-01-31",
        id="boolean for endDate",
    ),
    pytest.param(
        query_body(endDate="2025-12-31"),
        "INVALID_END_DATE",
        'Invalid endDate "2025-12-31": must not be before startDate',
        id="endDate before startDate",
    ),
    pytest.param(
        query_body(endDate="2036-01-01"),
        "INVALID_END_DATE",
        'Invalid endDate "2036-01-01": the range must be shorter than 10 years',
        id="ten years",
    ),
    pytest.param(
        query_body(startDate="2024-02-29", endDate="2034-03-01"),
        "INVALID_END_DATE",
        'Invalid endDate "2034-03-01": the range must be shorter than 10 years',
        id="ten years and a day from a leap day",
    ),
    pytest.param(
        query_body(startDate="2024-02-29", endDate="2034-02-28"),
        "INVALID_END_DATE",
        'Invalid endDate "2034-02-28": the range must be shorter than 10 years',
        id="ten years from a leap day",
    ),
    pytest.param(
        query_body(timezone="Europe/Berln"),
        "INVALID_TIMEZONE",
        'Invalid timezone "Europe/Berln" (did you mean "Europe/Berlin"?)',
        id="timezone",
    ),
    pytest.param(
        query_body(timezone="new_york"),
        "INVALID_TIMEZONE",
        'Invalid timezone "new_york" (did you mean "America/New_York"?)',
        id="city",
    ),
    pytest.param(
        query_body(timezone="utc"),
        "INVALID_TIMEZONE",
        'Invalid timezone "utc" (did you mean "UTC"?)',
        id="zone in small letters",
    ),
    pytest.param(
        query_body(timezone="singapore"),
        "INVALID_TIMEZONE",
        'Invalid timezone "singapore" (did you mean "Asia/Singapore"?)',
        id="city that is a zone",
    ),
    pytest.param(
        query_body(timezone="gmt+5"),
        "INVALID_TIMEZONE",
        'Invalid timezone "gmt+5": must be an IANA name such as Europe/Berlin; Etc/GMT-5 is 5 h'
        " ahead of UTC",
        id="offset",
    ),
    pytest.param(
        query_body(timezone="-03:00"),
        "INVALID_TIMEZONE",
        'Invalid timezone "-03:00": must be an IANA name such as Europe/Berlin; Etc/GMT+3 is 3 h'
        " behind UTC",
        id="offset behind UTC",
    ),
    pytest.param(
        query_body(timezone=2),
        "INVALID_TIMEZONE",
        "Invalid timezone: must be an IANA name in a string",
        id="number for timezone",
    ),
    *[
        pytest.param(
            query_body(timezone=name),
            "INVALID_TIMEZONE",
            f'Invalid timezone "{name}": must be an IANA name such as Europe/Berlin',
            id=label,
        )
        for name, label in (
            ("", "empty timezone"),
            ("../../etc/passwd", "path"),
            ("/usr/share/zoneinfo/UTC", "absolute path"),
            ("localtime", "zone of this machine"),
            ("Factory", "zone of an unset clock"),
            ("Europe", "directory"),
            ("+02:30", "offset of half an hour"),
            ("PST", "abbreviation"),
        )
    ],
    pytest.param(
        query_body(timezone="UTC\0"),
        "INVALID_TIMEZONE",
        'Invalid timezone "UTC\\u0000" (did you mean "UTC"?)',
        id="timezone with NUL",
    ),
    pytest.param(
        query_body(granularity="yearly"),
        "INVALID_GRANULARITY",
        'Invalid granularity "yearly" (one of hourly, daily, weekly, monthly)',
        id="granularity",
    ),
    pytest.param(
        query_body(granularity=["daily"]),
        "INVALID_GRANULARITY",
        "Invalid granularity: must be one of hourly, daily, weekly, monthly",
        id="array for granularity",
    ),
    pytest.param(
        query_body(table="profiles", granularity="daily"),
        "INVALID_GRANULARITY",
        'Invalid granularity: not available for table "profiles"',
        id="granularity of profiles",
    ),
    *[
        pytest.param(
            query_body(limit=limit),
            "INVALID_LIMIT",
            "Invalid limit: must be a whole number from 1",
            id=f"limit {limit}",
        )
        for limit in (0, -1, 1.5, "10", True, [1], {"a": 1})
    ],
    *[
        pytest.param(
            query_body(offset=offset),
            "INVALID_OFFSET",
            "Invalid offset: must be a whole number from 0 to 1000000",
            id=f"offset {offset}",
        )
        for offset in (-1, 1_000_001, 0.5, "0", False)
    ],
    pytest.param(
        query_body(orderBy=[{"field": "n"}] * 6),
        "INVALID_ORDER_BY",
        "Invalid orderBy: 6 keys given, maximum is 5",
        id="6 keys of orderBy",
    ),
    pytest.param(
        query_body(group_by=["country"], orderBy=[{"field": "contry"}]),
        "INVALID_ORDER_BY",
        'Invalid orderBy "contry" in orderBy[0]: no output has this name (did you mean "country"?)',
        id="orderBy of no output",
    ),
    pytest.param(
        query_body(
            {"field": "*", "aggregate": "count"},
            group_by=["country"],
            orderBy=[{"field": "count"}],
        ),
        "INVALID_ORDER_BY",
        'Invalid orderBy "count" in orderBy[0]: no output has this name'
        ' (did you mean "count_all"?)',
        id="orderBy of an aggregate",
    ),
    pytest.param(
        query_body(orderBy=[{"field": "date"}]),
        "INVALID_ORDER_BY",
        'Invalid orderBy "date" in orderBy[0]: no output has this name (one of n)',
        id="orderBy date without granularity",
    ),
    pytest.param(
        query_body(orderBy=[{"field": "n"}, {"field": "n", "direction": "up"}]),
        "INVALID_ORDER_BY",
        'Invalid orderBy in orderBy[1]: direction "up" (one of asc, desc)',
        id="direction",
    ),
    pytest.param(
        query_body(fill="yes"),
        "INVALID_FILL",
        "Invalid fill: must be true or false",
        id="text for fill",
    ),
    pytest.param(
        query_body(fill=True),
        "INVALID_FILL",
        "Invalid fill: requires a granularity",
        id="fill without granularity",
    ),
    pytest.param(
        query_body(fill=True, granularity="hourly", startDate="2024-12-01"),
        "INVALID_FILL",
        "Invalid fill: the result would have 10248 rows, maximum is 10000;"
        " use fewer days, fewer groups or a coarser granularity",
        id="too many hours",
    ),
    pytest.param(
        query_body(
            fill=True,
            granularity="hourly",
            compare={"startDate": "2023-01-01", "endDate": "2024-12-31"},
        ),
        "INVALID_FILL",
        "Invalid fill: the compared range would have 17544 rows, maximum is 10000;"
        " use fewer days, fewer groups or a coarser granularity",
        id="too many hours to compare with",
    ),
]


@pytest.mark.parametrize(("body", "code", "message"), REJECTIONS)
def test_error_has_code_and_detail(body: Body, code: str, message: str) -> None:
    assert rejection_of(body) == (code, message)


def test_every_error_code_except_that_of_decoding_is_used() -> None:
    reported_codes = {str(param.values[1]) for param in REJECTIONS}
    every = {code.name for code in QUERY.query_errors}
    assert every - reported_codes == {"INVALID_BODY"}


def changed(body: Body, change: Body) -> Body:
    return {
        **body,
        **{key: value for key, value in change.items() if key != "query"},
        "query": {**body["query"], **change.get("query", {})},
    }


ERRORS: list[tuple[str, Body]] = [
    ("INVALID_BODY", {"nope": 1}),
    ("INVALID_TABLE", {"query": {"table": "nope"}}),
    ("INVALID_AGGREGATE", {"query": {"selects": [select("path", "nope")]}}),
    ("INVALID_OPERATOR", {"query": {"filters": [where("path", "nope", "/")]}}),
    ("INVALID_COLUMN", {"query": {"groupBy": ["nope"]}}),
    ("DUPLICATE_OUTPUT_NAME", {"query": {"groupBy": ["path", "path"]}}),
    ("INVALID_START_DATE", {"startDate": "nope"}),
    ("INVALID_END_DATE", {"endDate": "nope"}),
    ("INVALID_TIMEZONE", {"timezone": "nope"}),
    ("INVALID_GRANULARITY", {"granularity": "nope"}),
    ("INVALID_LIMIT", {"limit": "nope"}),
    ("INVALID_OFFSET", {"offset": "nope"}),
    ("INVALID_ORDER_BY", {"orderBy": [{"field": "nope"}]}),
    ("INVALID_FILL", {"fill": "nope"}),
    ("INVALID_HAVING", {"having": "nope"}),
    ("INVALID_TOP", {"top": "nope"}),
    ("INVALID_COMPARE", {"compare": "nope"}),
    ("INVALID_TOTALS", {"totals": "nope"}),
]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, id=f"{first[0]} before {second[0]}")
        for first, second in combinations(ERRORS, 2)
    ],
)
def test_the_first_of_two_errors_is_reported(
    first: tuple[str, Body], second: tuple[str, Body]
) -> None:
    body = changed(changed(query_body(), second[1]), first[1])
    assert rejection_of(body)[0] == first[0]


CAUSES_OF_ROOT_SCALARS = {
    "startDate": "INVALID_START_DATE",
    "endDate": "INVALID_END_DATE",
    "lastDays": "INVALID_LAST_DAYS",
    "timezone": "INVALID_TIMEZONE",
    "granularity": "INVALID_GRANULARITY",
    "limit": "INVALID_LIMIT",
    "offset": "INVALID_OFFSET",
    "fill": "INVALID_FILL",
    "top": "INVALID_TOP",
    "others": "INVALID_TOP",
    "totals": "INVALID_TOTALS",
}


@pytest.mark.parametrize("value", [[], [1], {}, {"a": 1}], ids=str)
@pytest.mark.parametrize(("key", "code"), CAUSES_OF_ROOT_SCALARS.items())
def test_array_or_object_for_a_scalar_of_the_root_has_the_cause_of_its_key(
    key: str, code: str, value: Any
) -> None:
    body = {**query_body(group_by=["path"], granularity="daily"), key: value}
    if key == "lastDays":
        body = {**body, "startDate": None, "endDate": None}
    assert rejection_of(body)[0] == code


@pytest.mark.parametrize(
    ("key", "code"),
    [("startDate", "INVALID_START_DATE"), ("endDate", "INVALID_END_DATE")],
)
def test_missing_date_has_the_cause_of_its_key_in_the_order_of_the_checks(
    key: str, code: str
) -> None:
    body = query_body(limit="nope", timezone="nope")
    del body[key]
    message = f"Invalid {key}: a date such as 2026-01-31 is required"
    assert rejection_of(body) == (code, message)
    assert rejection_of(changed(body, {"query": {"groupBy": ["nope"]}}))[0] == "INVALID_COLUMN"


TWO_ALIASES = [select("*", "count", "x"), select("path", "uniq", "x")]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(
            query_body(*TWO_ALIASES, select("nope", "count")), "INVALID_COLUMN", id="later select"
        ),
        pytest.param(
            query_body(*TWO_ALIASES, filters=[where("path", "nope", "/")]),
            "INVALID_OPERATOR",
            id="filters",
        ),
        pytest.param(
            query_body(*TWO_ALIASES, group_by=["nope"]), "INVALID_COLUMN", id="group column"
        ),
        pytest.param(
            query_body(group_by=["path", "path", "nope"]), "INVALID_COLUMN", id="later group column"
        ),
        pytest.param(
            query_body(*TWO_ALIASES, startDate="nope"), "DUPLICATE_OUTPUT_NAME", id="before dates"
        ),
        pytest.param(
            query_body(select("*", "count", "date"), granularity="daily", startDate="nope"),
            "DUPLICATE_OUTPUT_NAME",
            id="date before dates",
        ),
    ],
)
def test_output_names_are_compared_after_group_by(body: Body, code: str) -> None:
    assert rejection_of(body)[0] == code


BAD_SELECT, BAD_FILTER = select("nope", "count"), where("nope", "eq", "/")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(query_body(*[BAD_SELECT] * 11), "TOO_MANY_SELECTS", id="length of selects"),
        pytest.param(query_body(filters=[BAD_FILTER] * 21), "TOO_MANY_FILTERS", id="of filters"),
        pytest.param(query_body(group_by=["nope"] * 6), "TOO_MANY_GROUP_BY", id="of groupBy"),
        pytest.param(
            query_body(select("path", "sum"), BAD_SELECT), "NOT_AGGREGATABLE", id="first select"
        ),
        pytest.param(
            query_body(filters=[where("path", "gt", 5), BAD_FILTER]),
            "INVALID_VALUE",
            id="first filter",
        ),
        pytest.param(
            query_body(filters=[where("nope", "nope", None)]), "INVALID_COLUMN", id="column first"
        ),
        pytest.param(
            query_body(filters=[where("value", "contains", [])]),
            "INVALID_OPERATOR",
            id="operator before value",
        ),
        pytest.param(
            query_body(filters=[where("path", "in", [5] * 1001)]),
            "INVALID_VALUE",
            id="length of values",
        ),
        pytest.param(
            query_body(filters=[where("time", "gt", "2026-01-01")], timezone="nope"),
            "INVALID_TIMEZONE",
            id="valid datetime that waits for its timezone",
        ),
    ],
)
def test_list_length_is_checked_before_its_items(body: Body, code: str) -> None:
    assert rejection_of(body)[0] == code


REJECTED_VALUES = [
    *[
        ("time", value)
        for value in (
            "",
            "2026-02-30",
            "2026-01-05T24:00:00",
            "2026-01-05T10:61",
            "2026-01-05T10:00:00+24:00",
            "2026-01-05T10:00:00+01:60",
            "2026-1-5",
            "20260105",
            "2026-01-05T10",
            " 2026-01-05",
            "2026-01-05\n",
            "1767225600000",
            "\u0662\u0660\u0662\u0666-01-05",
            1e300,
            -(10**15),
            True,
        )
    ],
    *[
        ("value", value)
        for value in ("", " 5", "1_000", "0x10", "nan", "inf", "1e999", "\uff15", True)
    ],
    ("value", 10**400),
]


@pytest.mark.parametrize(("field", "value"), REJECTED_VALUES)
def test_value_of_another_type_than_its_column_is_rejected(field: str, value: Any) -> None:
    assert rejection_of(filtering(field, "eq", value))[0] == "INVALID_VALUE"
