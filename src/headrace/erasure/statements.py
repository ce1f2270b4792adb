"""The statements of an erasure: which rows are stored, and which of them to delete.

Statements that find rows bind every value. Conditions that delete rows contain ids and the website
alone, because the text of a mutation is kept in a file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.erasure.subjects import HashPrefixes
from headrace.formats.event_ids import event_key, keyed_digest
from headrace.model.catalog import EVENTS, PROPERTY_PREFIX, Column, Kind, Operator, Table
from headrace.model.erasure import COLUMN_OF_KIND, Selector, SelectorKind
from headrace.model.plan import (
    CompiledQuery,
    Conjunction,
    FilterScalar,
    PlannedFilter,
    PlannedGroup,
)
from headrace.model.storage import EVENT_KEY, STORAGE_TABLES, TABLE_OF_KIND
from headrace.ports.rows.erasure import RowsToErase
from headrace.ports.store import Dialect
from headrace.query.sql.builder import Parameters, clause, statement
from headrace.query.sql.conditions import write_condition
from headrace.query.sql.expressions import Expressions

IDS_PER_DELETION: Final = 5_000
"""About 170 kB of a mutation's text, whose limit in ClickHouse is 256 KiB."""

_TIME_MS: Final = "toUnixTimestamp64Milli(time)"
_DAY: Final = f"toInt64(floor({_TIME_MS} / {MILLISECONDS_PER_DAY}))"
_SHOWN: Final[Mapping[Kind, str]] = {
    Kind.IDENTIFIER: "lower(hex({column}))",
    Kind.DATETIME: "toUnixTimestamp64Milli({column})",
}


def find_rows(
    table: Table, website_id: str, selectors: Sequence[Selector], dialect: Dialect
) -> CompiledQuery | None:
    """Return the statement for the ids, in hexadecimal digits, and times of the selected rows.

    None where the table has no column that a selector compares.
    """
    return _select(table, f"hex({table.name}.id), {_TIME_MS}", website_id, selectors, dialect)


def show_rows(
    table: Table, website_id: str, selectors: Sequence[Selector], dialect: Dialect
) -> CompiledQuery | None:
    """Return the statement for all stored columns of the selected rows, in their order.

    Datetimes are epoch milliseconds. None as in `find_rows`.
    """
    columns = STORAGE_TABLES[table.name].shown_columns
    shown = ", ".join(
        _SHOWN.get(column.kind, "{column}").format(column=f"{table.name}.{column.name}")
        for column in columns
    )
    return _select(table, shown, website_id, selectors, dialect)


def _select(
    table: Table, columns: str, website_id: str, selectors: Sequence[Selector], dialect: Dialect
) -> CompiledQuery | None:
    filters = _filters(table, selectors)
    if not filters:
        return None
    parameters = Parameters()
    website = parameters.bind(website_id, "String")
    expressions = Expressions(parameters, dialect)
    condition = write_condition(PlannedGroup(Conjunction.OR, filters), expressions)
    keys = _event_keys(table, website_id, selectors)
    if keys:
        has_key = f"hex({EVENT_KEY.name}) IN {parameters.bind(keys, 'Array(String)')}"
        condition = f"({condition} OR {has_key})"
    return CompiledQuery(
        statement(
            clause("WITH", ",", expressions.properties.definitions),
            f"SELECT {columns}",
            f"FROM {table.name}",
            clause("WHERE", " AND", [f"website_id = {website}", condition]),
        ),
        parameters.values,
        (),
        website_id,
    )


def _filters(table: Table, selectors: Sequence[Selector]) -> tuple[PlannedFilter, ...]:
    """Return a filter for each column: one for each value can exceed the length of a statement."""
    values: dict[Column, list[FilterScalar]] = {}
    for selector in selectors:
        column = compared_column(table, selector)
        if column is not None:
            values.setdefault(column, []).append(selector.value)
    return tuple(
        PlannedFilter(column, Operator.EQ if len(found) == 1 else Operator.IN, tuple(found))
        for column, found in values.items()
    )


def _event_keys(table: Table, website_id: str, selectors: Sequence[Selector]) -> list[str]:
    """Return the keys, in hexadecimal digits, of the rows whose event ids are selected."""
    (kind,) = (kind for kind, stored_in in TABLE_OF_KIND.items() if stored_in is table)
    return [
        event_key(keyed_digest(kind, website_id, str(selector.value))).hex().upper()
        for selector in selectors
        if selector.kind is SelectorKind.EVENT_ID
    ]


def compared_column(table: Table, selector: Selector) -> Column | None:
    """Return the column that a selector compares, None if the table has no such column."""
    if selector.kind is SelectorKind.PROPERTY:
        return table.column(f"{PROPERTY_PREFIX}{selector.key}")
    return table.column(COLUMN_OF_KIND.get(selector.kind, ""))


def count_rows(table: Table, website_id: str) -> CompiledQuery:
    """Return the statement that counts all rows of a website."""
    parameters = Parameters()
    website = parameters.bind(website_id, "String")
    sql = f"SELECT count() FROM {table.name} WHERE website_id = {website}"  # noqa: S608 - bound
    return CompiledQuery(sql, parameters.values, (), website_id)


def find_visitors(website_id: str, profile_id: str) -> CompiledQuery:
    """Return the statement for the anonymous ids that the rows of a profile have."""
    parameters = Parameters()
    website = parameters.bind(website_id, "String")
    profile = parameters.bind(profile_id, "String")
    sql = statement(
        "SELECT DISTINCT anonymous_id",
        f"FROM {EVENTS.name}",
        f"WHERE website_id = {website} AND profile_id = {profile} AND anonymous_id != ''",
    )
    return CompiledQuery(sql, parameters.values, (), website_id)


def find_values(
    table: Table,
    website_id: str,
    column: Column,
    prefixes: HashPrefixes,
    digests: Sequence[str],
) -> CompiledQuery:
    """Return the statement for the values of a column whose subjects have these digests."""
    parameters = Parameters()
    website = parameters.bind(website_id, "String")
    inner = parameters.bind(prefixes.inner.hex(), "String")
    outer = parameters.bind(prefixes.outer.hex(), "String")
    wanted = parameters.bind(list(digests), "Array(String)")
    hashed = f"SHA256(concat(unhex({outer}), SHA256(concat(unhex({inner}), value))))"
    sql = statement(
        "SELECT value",
        f"FROM (SELECT DISTINCT {_text(column)} AS value FROM {table.name} "  # noqa: S608 - bound
        f"WHERE website_id = {website})",
        f"WHERE lower(hex({hashed})) IN {wanted}",
    )
    return CompiledQuery(sql, parameters.values, (), website_id)


def deletions(website_id: str, rows: RowsToErase) -> Iterator[str]:
    """Yield the conditions that delete rows, each as SQL for one mutation."""
    website = f"website_id = unhex('{website_id.encode().hex()}')"
    if not rows.ids:
        yield website
        return
    bounds = " AND ".join(
        f"time {operator} fromUnixTimestamp64Milli({at_ms}, 'UTC')"
        for operator, at_ms in ((">=", rows.first_ms), ("<=", rows.last_ms))
    )
    for start in range(0, len(rows.ids), IDS_PER_DELETION):
        ids = rows.ids[start : start + IDS_PER_DELETION]
        listed = ", ".join(f"'{row_id.hex().upper()}'" for row_id in ids)
        yield f"{website} AND {bounds} AND hex(id) IN ({listed})"


def _text(column: Column) -> str:
    return "lower(hex(id))" if column.name == "id" else column.name


def find_days(table: Table, website_id: str) -> CompiledQuery:
    """Return the statement for the UTC days since 1970 on which a website has rows."""
    parameters = Parameters()
    website = parameters.bind(website_id, "String")
    sql = f"SELECT DISTINCT {_DAY} FROM {table.name} WHERE website_id = {website}"  # noqa: S608 - bound
    return CompiledQuery(sql, parameters.values, (), website_id)


def find_properties(table: Table, website_id: str, day: int) -> CompiledQuery:
    """Return the statement for the different properties of a website's rows of one UTC day."""
    parameters = Parameters()
    website = parameters.bind(website_id, "String")
    first, end = (
        parameters.bind(at_day * MILLISECONDS_PER_DAY, "Int64") for at_day in (day, day + 1)
    )
    sql = statement(
        "SELECT DISTINCT properties",
        f"FROM {table.name}",
        f"WHERE website_id = {website} AND properties != ''",
        f"AND time >= fromUnixTimestamp64Milli({first}, 'UTC')",
        f"AND time < fromUnixTimestamp64Milli({end}, 'UTC')",
    )
    return CompiledQuery(sql, parameters.values, (), website_id)
