"""Composes a custom or a standard query from a file or from options."""

import sys
from codecs import BOM_UTF8
from collections.abc import Mapping
from datetime import UTC, date, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from headrace.base.clock import Clock, utc_datetime
from headrace.base.errors import OperatorError, system_reason
from headrace.cli.output import JsonObject
from headrace.cli.query.client import CUSTOM_PATH, Call
from headrace.cli.query.syntax import (
    read_filter,
    read_group,
    read_having,
    read_order,
    read_select,
)
from headrace.model.catalog import EVENTS, Table, find_table
from headrace.model.wire import Filter, Query
from headrace.query.standard.definitions import STANDARD_TYPES
from headrace.query.validate.timezones import find_zone

STANDARD_PATH = "/v1/query/standard"
STANDARD_INPUT = "-"
DEFAULT_DAYS = 7
"""Length of the default date range, today included."""

_COUNT_ROWS = ("count",)


class QueryOptions(Struct, frozen=True, kw_only=True):
    """The options that make a query, as they were written."""

    standard: tuple[str, ...] = ()
    table: str | None = None
    selects: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    any_filters: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    last_days: int | None = None
    having: tuple[str, ...] = ()
    timezone: str | None = None
    granularity: str | None = None
    order: tuple[str, ...] = ()
    limit: int | None = None
    offset: int | None = None
    fill: bool = False
    totals: bool = False
    compare: str | None = None
    top: int | None = None
    others: bool = False


def compose_query(source: str | None, options: QueryOptions, clock: Clock) -> Call:
    """Return a query from a file's path (`-` is standard input) or from options.

    Options replace the fields of a file beside its query or types; fields in neither get the
    defaults. Raises `OperatorError` for a file or an option that cannot be read.
    """
    body = _compose_body(source, options)
    body |= default_date_range(body, clock)
    return Call(encode_body(body), STANDARD_PATH if "types" in body else CUSTOM_PATH)


def compose_saved_query(source: str | None, options: QueryOptions) -> bytes:
    """Return the body of a query to save; see `compose_query`.

    Without days it gets the last seven, so that its range moves on with time.
    """
    body = _compose_body(source, options)
    if "types" in body:
        raise OperatorError("cannot save a standard query; save a custom one")
    if all(body.get(name) is None for name in ("startDate", "endDate", "lastDays")):
        body["lastDays"] = DEFAULT_DAYS
    return encode_body(body)


def _compose_body(source: str | None, options: QueryOptions) -> JsonObject:
    body = _from_options(options) if source is None else _from_file(source, options)
    fields = _fields_beside_query(options)
    for name in _replaced_days(fields):
        body.pop(name, None)
    return body | fields


def _replaced_days(fields: JsonObject) -> tuple[str, ...]:
    """Return the fields of a file that options for the days replace: days are given in one way."""
    if "lastDays" in fields:
        return ("startDate", "endDate")
    return ("lastDays",) if fields.keys() & {"startDate", "endDate"} else ()


def encode_body(body: JsonObject) -> bytes:
    """Encode a body; raises `OperatorError` for text that is no UTF-8."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        raise OperatorError("the query is not valid UTF-8") from None


def _from_options(options: QueryOptions) -> JsonObject:
    if options.standard:
        return _standard_from_options(options)
    if options.table is None:
        raise OperatorError(
            "the query is missing: give a table with --table, types with --standard, or a file "
            "with a query in JSON"
        )
    table = find_table(options.table)
    query = Query(
        options.table,
        selects=[read_select(text, table) for text in options.selects or _COUNT_ROWS],
        filters=_filters(options, table),
        group_by=[name for text in options.groups for name in read_group(text)],
    )
    return {"query": msgspec.to_builtins(query)}


def _standard_from_options(options: QueryOptions) -> JsonObject:
    if any((options.table, options.selects, options.groups)):
        raise OperatorError("cannot combine --standard with --table, --select or --group-by")
    types = [name for text in options.standard for name in read_group(text)]
    definition = STANDARD_TYPES.get(types[0])
    table = EVENTS if definition is None else find_table(definition.queries[0].table)
    return {"types": types, "filters": msgspec.to_builtins(_filters(options, table))}


def _filters(options: QueryOptions, table: Table | None) -> list[Filter]:
    """Return the filters that all rows match, then the group with one that each row matches."""
    filters = [read_filter(text, table) for text in options.filters]
    group = [read_filter(text, table) for text in options.any_filters]
    return [*filters, Filter(any_of=group)] if group else filters


def _from_file(source: str, options: QueryOptions) -> JsonObject:
    """Read a whole body, or only the query of a custom one."""
    given = (options.table, options.selects, options.filters, options.any_filters, options.groups)
    if options.standard or any(given):
        raise OperatorError(
            "cannot combine a file with --standard, --table, --select, --where, --where-any or "
            "--group-by"
        )
    try:
        content = _read_bytes(source).removeprefix(BOM_UTF8)  # as some editors write it
        return _as_body(msgspec.json.decode(content, type=dict[str, Any]))
    except OSError as error:
        reason = system_reason(error)
        raise OperatorError(f"cannot read {_source_label(source)}: {reason}") from error
    except msgspec.ValidationError:
        raise OperatorError(
            f"cannot read {_source_label(source)}: it is not a JSON object"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OperatorError(f"cannot read {_source_label(source)}: invalid JSON: {error}") from None


def _read_bytes(source: str) -> bytes:
    if source == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    return Path(source).read_bytes()


def _source_label(source: str) -> str:
    return "standard input" if source == STANDARD_INPUT else source


def _as_body(content: JsonObject) -> JsonObject:
    return content if content.keys() & {"query", "types"} else {"query": content}


def _fields_beside_query(options: QueryOptions) -> JsonObject:
    order = [key for text in options.order for key in read_order(text)]
    fields = {
        "startDate": options.first,
        "endDate": options.last,
        "lastDays": options.last_days,
        "timezone": options.timezone,
        "granularity": options.granularity,
        "orderBy": msgspec.to_builtins(order) or None,
        "having": [msgspec.to_builtins(read_having(text)) for text in options.having] or None,
        "limit": options.limit,
        "offset": options.offset,
        "fill": options.fill or None,
        "compare": options.compare and _compare(options.compare),
        "totals": options.totals or None,
        "top": options.top,
        "others": options.others or None,
    }
    return _without_nulls(fields)


def _compare(text: str) -> JsonObject | str:
    """Return the name of a period as it is, and DATE..DATE as a range."""
    first, separator, last = text.partition("..")
    return {"startDate": first, "endDate": last} if separator else text


def _without_nulls(fields: Mapping[str, Any]) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def default_date_range(body: Mapping[str, Any], clock: Clock) -> JsonObject:
    """Return the missing ends of the date range: seven days, until today in its timezone."""
    missing: JsonObject = {}
    if body.get("lastDays") is not None:
        return missing
    today = _today(body.get("timezone"), clock)
    if body.get("endDate") is None:
        missing["endDate"] = today.isoformat()
    if body.get("startDate") is None:
        last = _parse_date(body.get("endDate")) or today
        missing["startDate"] = (last - timedelta(days=DEFAULT_DAYS - 1)).isoformat()
    return missing


def _today(timezone: object, clock: Clock) -> date:
    zone = find_zone(timezone) if isinstance(timezone, str) else None
    return utc_datetime(clock.now_ms()).astimezone(zone or UTC).date()


def _parse_date(text: object) -> date | None:
    """Return a date, or None for an invalid one, which the service rejects, and for year 1."""
    try:
        day = date.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return day if day is not None and day.year > 1 else None
