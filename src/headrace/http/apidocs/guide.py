"""The chapters of the reference: prose with limits substituted, and tables made from the catalog.

Limits are written as `$name` in the prose and taken from the settings, the catalog and the
constants of ingestion, so that the text cannot disagree with the code.
"""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from string import Template
from typing import Any

from msgspec import UNSET, Struct
from msgspec.json import encode

from headrace.base.settings import Settings
from headrace.http.apidocs.field_docs import ERROR_TEXT_LENGTHS
from headrace.http.apidocs.markdown import write_code, write_table
from headrace.http.reading.content_encoding import MAX_MEMBERS
from headrace.http.reading.cors import INGESTION_REQUEST_HEADERS
from headrace.ingest.receive.decoding.body_scan import MAX_NESTING
from headrace.ingest.receive.decoding.validation_errors import MAX_FIELD_ERRORS
from headrace.ingest.receive.idempotency import MAX_IDEMPOTENCY_KEY
from headrace.model.catalog import (
    AGGREGATE_DESCRIPTIONS,
    OPERATOR_DESCRIPTIONS,
    PAGE_VIEW_NAMES,
    PROMOTED_COLUMNS,
    QUERY_LIMITS,
    TABLES,
)
from headrace.model.wire import Filter, Query, Select
from headrace.ports.rate_limiter import CountedCall, calls_per_minute
from headrace.query.schema.document import query_schema
from headrace.query.standard.definitions import STANDARD_TYPES

_KIBIBYTE = 1024
_UNITS = ("bytes", "KiB", "MiB", "GiB")


class Chapter(Struct, frozen=True):
    """One chapter in Markdown; its headings start at the third level."""

    title: str
    text: str


def read_overview() -> str:
    """Return the text that precedes all chapters."""
    return _read_prose("overview")


def build_guide(settings: Settings) -> tuple[Chapter, ...]:
    """Return the chapters in reading order."""
    template_values = _template_values(settings)

    def chapter(title: str, prose: str, *tables: str) -> Chapter:
        text = Template(_read_prose(prose)).substitute(template_values)
        return Chapter(title, "\n\n".join((text, *tables)))

    return (
        chapter("Credentials", "credentials"),
        chapter("Sending", "ingestion"),
        chapter("From an event to a row", "event_rows"),
        chapter("Tables and columns", "columns", *_column_tables()),
        chapter("Query language", "query_language", *_function_tables()),
        chapter("Funnels", "funnels"),
        chapter("Retention", "retention"),
        chapter("Standard queries", "standard", *_type_tables()),
        chapter("Answers", "results"),
    )


def format_size(size: int) -> str:
    """Format a number of bytes in the largest unit that divides it, such as `10 MiB`."""
    unit = 0
    while size % _KIBIBYTE == 0 and unit < len(_UNITS) - 1:
        size //= _KIBIBYTE
        unit += 1
    return f"{size:,} {_UNITS[unit]}"


def _template_values(settings: Settings) -> Mapping[str, str]:
    calls = calls_per_minute(settings.query_rate_limit)
    return {
        "max_body": format_size(settings.max_body_bytes),
        "max_decoded": format_size(settings.max_decoded_bytes),
        "max_items": f"{settings.max_items:,}",
        "max_body_objects": f"{settings.max_body_objects:,}",
        "max_body_keys": f"{settings.max_body_keys:,}",
        "max_query_body": format_size(settings.max_query_bytes),
        "body_timeout": _format_seconds(settings.body_timeout_s),
        "slow_body_after": _format_seconds(settings.slow_body_after_s),
        "slow_body_throughput": format_size(settings.slow_body_bytes_per_s),
        "query_timeout": _format_seconds(settings.query_timeout_s),
        "query_queue_timeout": _format_seconds(settings.query_queue_timeout_s),
        "query_max_memory": format_size(settings.query_max_memory_bytes),
        "directory_max_staleness": _format_seconds(settings.directory_max_staleness_s),
        "query_rate_limit": f"{calls[CountedCall.QUERY]:,}",
        "standard_rate_limit": f"{calls[CountedCall.STANDARD]:,}",
        "write_rate_limit": f"{calls[CountedCall.WRITE]:,}",
        "max_members": f"{MAX_MEMBERS:,}",
        "max_nesting": f"{MAX_NESTING:,}",
        "max_field_errors": f"{MAX_FIELD_ERRORS:,}",
        "max_idempotency_key": f"{MAX_IDEMPOTENCY_KEY:,}",
        "max_message": f"{ERROR_TEXT_LENGTHS['message']:,}",
        "max_stack": f"{ERROR_TEXT_LENGTHS['stack']:,}",
        "max_promoted_text": f"{min(column.max_length for column in PROMOTED_COLUMNS):,}",
        "ingestion_headers": ", ".join(map(write_code, INGESTION_REQUEST_HEADERS)),
        "page_views": ", ".join(map(write_code, PAGE_VIEW_NAMES)),
        "promoted_columns": ", ".join(write_code(column.name) for column in PROMOTED_COLUMNS),
        **{name: f"{limit:,}" for name, limit in QUERY_LIMITS.items()},
    }


def _format_seconds(seconds: float) -> str:
    return f"{seconds:g} seconds"


def _read_prose(name: str) -> str:
    return (files("headrace.http.apidocs") / "chapters" / f"{name}.md").read_text().strip()


def _column_tables() -> Iterator[str]:
    aliases = {one.name: one.aliases for one in TABLES}
    for one in query_schema()["tables"]:
        also = "".join(f" Also called {write_code(name)}." for name in aliases[one["name"]])
        rows = [_column_row(column) for column in one["columns"]]
        header = ("Column", "Type", "Filterable", "Aggregatable", "Meaning")
        yield f"### {one['name']}\n\n{_sentence(one['description'])}{also}"
        yield write_table(header, rows)


def _column_row(column: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        write_code(column["name"]),
        column["type"],
        _yes_or_no(column["filterable"]),
        _yes_or_no(column["aggregatable"]),
        column["description"],
    )


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _type_tables() -> Iterator[str]:
    yield "### All types"
    yield write_table(
        ("Type", "Table", "groupBy", "Selects", "Filters"),
        (
            (write_code(name), *_query_row(query))
            for name, definition in STANDARD_TYPES.items()
            for query in definition.queries
        ),
    )


def _query_row(query: Query) -> tuple[str, ...]:
    return (
        write_code(query.table),
        ", ".join(map(write_code, query.group_by or ())),
        "; ".join(map(_describe_select, query.selects)),
        " and ".join(map(_describe_filter, query.filters or ())),
    )


def _describe_select(select: Select) -> str:
    filters = " and ".join(map(_describe_filter, select.filters or ()))
    described = f"{write_code(select.alias)}: {select.aggregate} of {write_code(select.field)}"
    return f"{described} where {filters}" if filters else described


def _describe_filter(item: Filter) -> str:
    if item.any_of is not None:
        return " or ".join(map(_describe_filter, item.any_of))
    value = "" if item.value is UNSET else f" {encode(item.value).decode()}"
    return write_code(f"{item.field} {item.operator}{value}")


def _function_tables() -> Iterator[str]:
    yield "### All aggregates"
    aggregates = AGGREGATE_DESCRIPTIONS.items()
    yield write_table(
        ("Aggregate", "Result"), ((write_code(one.value), text) for one, text in aggregates)
    )
    yield "### All operators"
    operators = OPERATOR_DESCRIPTIONS.items()
    yield write_table(
        ("Operator", "Matches"), ((write_code(one.value), text) for one, text in operators)
    )
    yield "### All limits of a query"
    limits = QUERY_LIMITS.items()
    yield write_table(
        ("Limit", "Value"), ((write_code(name), f"{limit:,}") for name, limit in limits)
    )
