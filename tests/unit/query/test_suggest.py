"""The wording of a suggestion, and how it quotes the caller's text."""

import msgspec
import pytest

from headrace.base.closest_match import normalize
from headrace.base.errors import InvalidQuery
from headrace.model.catalog import EVENTS, TABLES, Aggregate, Operator, table_names
from headrace.model.plan import Direction, Granularity
from headrace.model.wire import Filter, OrderBy, Query, QueryRequest, Select
from headrace.model.wire_analyses import StandardRequest
from headrace.query.standard.definitions import STANDARD_TYPES
from headrace.query.validate.check import check_table
from headrace.query.validate.columns import find_column
from headrace.query.validate.compare import PERIODS
from headrace.query.validate.suggest import (
    did_you_mean,
    did_you_mean_one_of,
    quote_json,
)
from headrace.query.validate.synonyms import (
    AGGREGATE_SYNONYMS,
    COLUMN_SYNONYMS,
    DIRECTION_SYNONYMS,
    GRANULARITY_SYNONYMS,
    KEY_SYNONYMS,
    OPERATOR_SYNONYMS,
    PERIOD_SYNONYMS,
    TABLE_SYNONYMS,
    TYPE_SYNONYMS,
)
from testing.queries import query_body, rejection_of

COLUMNS = [column.name for column in EVENTS.columns]


def test_name_that_is_close_to_none_gets_no_suggestion() -> None:
    assert did_you_mean("zzzzzz", COLUMNS) == ""


def test_small_closed_set_is_listed_where_nothing_is_close() -> None:
    assert did_you_mean_one_of("zzz", ("hourly", "daily")) == " (one of hourly, daily)"


def test_close_name_of_a_small_closed_set_is_suggested() -> None:
    assert did_you_mean_one_of("Daily", ("hourly", "daily")) == ' (did you mean "daily"?)'


def test_very_long_name_is_truncated_and_compared_with_nothing() -> None:
    assert quote_json("path" * 50) == '"' + "path" * 25 + '…"'
    assert did_you_mean("path" * 50, COLUMNS) == ""


def test_quotes_and_control_characters_are_escaped() -> None:
    assert quote_json('a"b\n\\🦆') == r'"a\"b\n\\🦆"'


VOCABULARIES = {
    "tables": (TABLE_SYNONYMS, list(table_names())),
    "operators": (OPERATOR_SYNONYMS, [operator.value for operator in Operator]),
    "aggregates": (AGGREGATE_SYNONYMS, [aggregate.value for aggregate in Aggregate]),
    "granularities": (GRANULARITY_SYNONYMS, [size.value for size in Granularity]),
    "periods": (PERIOD_SYNONYMS, PERIODS),
    "types": (TYPE_SYNONYMS, list(STANDARD_TYPES)),
    "directions": (DIRECTION_SYNONYMS, [direction.value for direction in Direction]),
    "columns": (
        COLUMN_SYNONYMS,
        [column.name for table in TABLES for column in table.columns],
    ),
    "keys": (
        KEY_SYNONYMS,
        [
            field.encode_name
            for struct in (QueryRequest, Query, Select, OrderBy, Filter, StandardRequest)
            for field in msgspec.structs.fields(struct)
        ],
    ),
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_words_stand_for_names_that_exist(name: str) -> None:
    synonyms, names = VOCABULARIES[name]
    for word, meanings in synonyms.items():
        assert word == normalize(word)
        assert {one for meaning in meanings for one in meaning} <= set(names)


@pytest.mark.parametrize(
    ("name", "word", "hint"),
    [
        ("operators", "==", ' (did you mean "eq"?)'),
        ("operators", "not_equals", ' (did you mean "ne"?)'),
        ("operators", "is_not", ' (did you mean "ne"?)'),
        ("operators", "begins_with", ' (did you mean "starts_with"?)'),
        ("operators", "NOT LIKE", ' (did you mean "not_contains"?)'),
        ("operators", "nin", ' (did you mean "not_in"?)'),
        ("operators", "between", ' (did you mean "gte" and "lte"?)'),
        ("aggregates", "countDistinct", ' (did you mean "uniq"?)'),
        ("aggregates", "median", ' (did you mean "p50"?)'),
        ("aggregates", "percentile_75", ' (did you mean "p75"?)'),
        ("granularities", "1d", ' (did you mean "daily"?)'),
        ("granularities", "quarter", " (one of hourly, daily, weekly, monthly)"),
        ("periods", "previous", ' (did you mean "previous_period"?)'),
        ("periods", "previous_month", ' (did you mean "previous_period"?)'),
        ("periods", "lastYear", ' (did you mean "previous_year"?)'),
        ("directions", "descending", ' (did you mean "desc"?)'),
        ("tables", "users", ' (did you mean "profiles"?)'),
        ("types", "overview", ' (did you mean "summary"?)'),
        ("types", "top_pages", ' (did you mean "pages"?)'),
        ("types", "os", ' (did you mean "systems"?)'),
    ],
)
def test_word_of_another_language_suggests_the_name(name: str, word: str, hint: str) -> None:
    synonyms, names = VOCABULARIES[name]
    assert did_you_mean_one_of(word, names, synonyms) == hint


def test_word_for_names_that_are_not_known_here_suggests_none_of_them() -> None:
    assert did_you_mean_one_of("like", ("eq", "ne"), OPERATOR_SYNONYMS) == " (one of eq, ne)"


@pytest.mark.parametrize(
    ("table", "name", "hint"),
    [
        ("events", "os", ' (did you mean "os_name", or the property "properties.os"?)'),
        ("events", "name", ' (did you mean "event_name", or the property "properties.name"?)'),
        ("performance", "name", ' (did you mean "metric_name"?)'),
        ("sessions", "page", ' (did you mean "entry_path"?)'),
        (
            "events",
            "duration",
            ' (it is a column of "sessions"; a property is "properties.duration")',
        ),
        ("sessions", "metric_value", ' (it is a column of "performance")'),
        ("sessions", "properties.plan", ' (properties are columns of "events")'),
        ("errors", "type", ' (did you mean "error_type"?)'),
        (
            "performance",
            "lcp",
            ' (it is the "metric_value" of rows with the "metric_name" "LCP")',
        ),
    ],
)
def test_column_by_another_word_or_of_another_table_is_named(
    table: str, name: str, hint: str
) -> None:
    with pytest.raises(InvalidQuery) as raised:
        find_column(check_table(table), name)
    assert str(raised.value) == f'Invalid column "{name}" for table "{table}"{hint}'


@pytest.mark.parametrize(
    ("table", "name", "hint"),
    [
        ("sessions", "date", ' (did you mean granularity "daily"?)'),
        (
            "events",
            "hour",
            ' (did you mean granularity "hourly", or the property "properties.hour"?)',
        ),
        ("performance", "Week", ' (did you mean granularity "weekly"?)'),
        ("errors", "month", ' (did you mean granularity "monthly"?)'),
        ("profiles", "date", ' (did you mean "first_seen"?)'),
    ],
)
def test_group_of_time_is_a_granularity(table: str, name: str, hint: str) -> None:
    body = query_body(table=table, group_by=[name])
    message = f'Invalid column "{name}" for table "{table}"{hint}'
    assert rejection_of(body) == ("INVALID_COLUMN", message)
