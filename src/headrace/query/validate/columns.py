"""Find the columns that a query names; errors suggest a similar name."""

from collections.abc import Callable

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.catalog import (
    ALL_ROWS,
    ANY_COLUMN_AGGREGATES,
    DATETIME_AGGREGATES,
    EVENTS,
    PERFORMANCE,
    PROPERTY_PREFIX,
    SHARE_AGGREGATES,
    TABLES,
    Aggregate,
    Column,
    Kind,
    Table,
)
from headrace.model.plan import Granularity
from headrace.model.wire import MetricName
from headrace.query.validate.suggest import did_you_mean, quote_json
from headrace.query.validate.synonyms import COLUMN_SYNONYMS, TIME_SYNONYMS, meaning_of

PROPERTY_COLUMN = f"{PROPERTY_PREFIX}KEY"
"""The name of a property's column in messages and documents that leave the key open."""

_OTHER_PREFIXES = ("props", "property")
"""What other products call them."""


_METRICS = frozenset(metric.value for metric in MetricName)


def find_column(table: Table, name: str) -> Column:
    """Return a column of the table. Raises `InvalidQuery`: `Invalid column`."""
    column = table.column(name)
    if column is None:
        raise _invalid_column(table, name, _suggest(table, name))
    return column


def find_group_column(table: Table, name: str) -> Column:
    """Return a column to group by. Raises `InvalidQuery`: `Invalid column`.

    The suggestion for a word of time, which no table has as a column, is a granularity.
    """
    sizes = meaning_of(name, TIME_SYNONYMS, [size.value for size in Granularity])
    if sizes and table.supports_granularity and table.column(name) is None:
        meant = f"granularity {quote_json(sizes[0])}{_or_property(table, name)}"
        raise _invalid_column(table, name, f" (did you mean {meant}?)")
    return find_column(table, name)


def _invalid_column(table: Table, name: str, hint: str) -> InvalidQuery:
    detail = f" {quote_json(name)} for table {quote_json(table.name)}"
    return InvalidQuery(QueryErrorCode.INVALID_COLUMN, detail, hint)


def _suggest(table: Table, name: str) -> str:
    """Return the column that is meant, the tables that have it, or the column of a property."""
    names = [known.name for known in table.columns]
    of_property = _column_of_property(table, name)
    if meant := meaning_of(name, COLUMN_SYNONYMS, names):
        return f" (did you mean {quote_json(meant[0])}{_or_property(table, name)}?)"
    if table is PERFORMANCE and name.upper() in _METRICS:
        metric = quote_json(name.upper())
        return f' (it is the "metric_value" of rows with the "metric_name" {metric})'
    if name.startswith(PROPERTY_PREFIX) and not table.has_properties:
        return f" (properties are columns of {quote_json(EVENTS.name)})"
    others = [other.name for other in TABLES if name in (known.name for known in other.columns)]
    if others:
        also = f"; a property is {quote_json(of_property)}" if of_property else ""
        return f" (it is a column of {' and '.join(map(quote_json, others))}{also})"
    similar = did_you_mean(name, (*names, PROPERTY_COLUMN) if table.has_properties else names)
    if similar or of_property is None:
        return similar
    return f" (a property is {quote_json(of_property)})"


def _or_property(table: Table, name: str) -> str:
    """Return the end of a suggestion: a property may have a name that means a column too."""
    of_property = _column_of_property(table, name)
    return "" if of_property is None else f", or the property {quote_json(of_property)}"


def _column_of_property(table: Table, name: str) -> str | None:
    """Return the column of the property of a name, None where a table has none of this name."""
    prefix, dot, key = name.partition(".")
    column = PROPERTY_PREFIX + (key if dot and prefix in _OTHER_PREFIXES else name)
    return None if name == ALL_ROWS or table.column(column) is None else column


def find_filterable(table: Table, name: str) -> Column:
    """Return a filterable column.

    Raises `InvalidQuery`: `Invalid column` or `Column not filterable`.
    """
    column = find_column(table, name)
    if not column.filterable:
        raise InvalidQuery(
            QueryErrorCode.NOT_FILTERABLE, f" {quote_json(name)} for table {quote_json(table.name)}"
        )
    return column


def check_aggregatable(table: Table, column: Column, aggregate: Aggregate) -> None:
    """Raise `InvalidQuery` (`Column not aggregatable`) unless the aggregate takes the column."""
    if aggregate in ANY_COLUMN_AGGREGATES:
        return
    accepts, plural = _accepted_columns(aggregate)
    if accepts(column):
        return
    names = [known.name for known in table.columns if accepts(known)]
    reason = (
        f": {aggregate.value} is for {plural}, such as {quote_json(names[-1])}"
        if names
        else f": {aggregate.value} is for {plural}, and it has none"
    )
    raise InvalidQuery(
        QueryErrorCode.NOT_AGGREGATABLE,
        f" {quote_json(column.name)} for table {quote_json(table.name)}",
        reason,
    )


def _accepted_columns(aggregate: Aggregate) -> tuple[Callable[[Column], bool], str]:
    """Return which columns an aggregate takes, and what they are called."""
    if aggregate in DATETIME_AGGREGATES:
        return lambda column: column.kind is Kind.DATETIME, "datetimes"
    if aggregate in SHARE_AGGREGATES:
        return lambda column: column.is_rated, "web vitals"
    return lambda column: column.aggregatable, "measures"
