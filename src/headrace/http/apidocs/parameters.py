"""The parameters of each operation in the OpenAPI document."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.http.apidocs.schema_rules import Schema
from headrace.http.endpoint_operations import ERASURES_LIST, SAVED_DELETE, SAVED_SHOW
from headrace.http.endpoint_spec import Operation
from headrace.http.endpoints import (
    ADMIN_AUDIT,
    ADMINISTRATION_ENDPOINTS,
    ERASURE,
    ERASURES,
    EXPORT,
    INGESTION_ENDPOINTS,
    LIVE,
    QUERY_ENDPOINTS,
    SAVED,
    SAVED_ANSWER,
    SAVED_FORMATS,
    SAVED_LIST,
    SCHEMA,
    SQL,
    STANDARD,
    STORAGE,
    SUBJECT_ACCESS,
    VALUES,
)
from headrace.ingest.receive.idempotency import MAX_IDEMPOTENCY_KEY
from headrace.model.audit import DEFAULT_AUDIT_LINES, MAX_AUDIT_LINES
from headrace.model.catalog import QUERY_LIMITS, table_names
from headrace.model.saved_query import SAVED_NAME
from headrace.query.export.check import FORMAT_NAMES, TABLE_NAMES

Parameter = dict[str, Any]

_DIGITS: Schema = {"pattern": "^[0-9]+$"}


def parameters_of(operation: Operation) -> Sequence[Parameter]:
    """Return the parameters of an operation, those of its path included."""
    path = operation.endpoint.path
    if operation in _PARAMETERS:
        return _PARAMETERS[operation]
    if "{hash}" in path:
        return (_HASH,)
    if operation.endpoint in ADMINISTRATION_ENDPOINTS and "{id}" in path:
        return (_OBJECT_ID,)
    return ()


def _parameter(name: str, location: str, description: str, **rules: object) -> Parameter:
    schema = {"type": "string", **rules}
    return {"name": name, "in": location, "description": description, "schema": schema}


def _required(name: str, location: str, description: str, **rules: object) -> Parameter:
    return {**_parameter(name, location, description, **rules), "required": True}


_HASH = _required("hash", "path", "the first eight digits of the SHA-256 of the file")
_OBJECT_ID = _required("id", "path", "the id of the object")
_WEBSITE = _required("website_id", "query", "the website", minLength=1)
_QUERIED_WEBSITE = _required("website_id", "query", "the website to query", minLength=1)
_SAVED_NAME = _required(
    "name", "path", "the name of the saved query", pattern=f"^{SAVED_NAME.pattern}$"
)
_INGESTION = (
    _parameter("website_id", "query", "the website; required without a key"),
    _parameter("client_id", "query", "alias of `website_id` that browser trackers use"),
    _parameter("databuddy-client-id", "header", "the same, for clients whose URL is fixed"),
    _parameter(
        "Idempotency-Key",
        "header",
        "makes the request safe to retry",
        maxLength=MAX_IDEMPOTENCY_KEY,
    ),
)
_VALUES = (
    _QUERIED_WEBSITE,
    _required("table", "query", "the table", enum=list(table_names())),
    _required("field", "query", "a column or `properties.KEY`", minLength=1),
    _parameter(
        "search",
        "query",
        "a part of the values, in any case",
        maxLength=QUERY_LIMITS["maxSearchLength"],
    ),
    _parameter(
        "limit", "query", f"number of values, reduced to {QUERY_LIMITS['maxValues']}", **_DIGITS
    ),
    _parameter("startDate", "query", "first day, YYYY-MM-DD in the timezone", format="date"),
    _parameter("endDate", "query", "last day, included", format="date"),
    _parameter(
        "lastDays",
        "query",
        f"days up to today, 1 to {QUERY_LIMITS['maxLastDays']}, instead of the dates; 30 without"
        " either",
        **_DIGITS,
    ),
    _parameter("timezone", "query", "IANA timezone of the days; UTC without it"),
)
_EXPORT = (
    _required("website_id", "query", "the website to export", minLength=1),
    _required("table", "query", "the table", enum=list(TABLE_NAMES)),
    _required("format", "query", "the format of the response", enum=list(FORMAT_NAMES)),
    _parameter("from", "query", "the first day, in UTC; without it, from the first row on"),
    _parameter("to", "query", "the last day, in UTC; it is included"),
)
_SAVED_ANSWER = (
    _SAVED_NAME,
    _required("format", "path", "the format of the answer", enum=list(SAVED_FORMATS)),
    _parameter("website_id", "query", "the website; required without a token"),
    _parameter("token", "query", "the token of the saved query, in the place of a key"),
    _parameter("If-None-Match", "header", "the ETag of the answer that the client has"),
)
_AUDIT = (
    _parameter(
        "limit",
        "query",
        f"number of lines, reduced to {MAX_AUDIT_LINES}; {DEFAULT_AUDIT_LINES} without it",
        **_DIGITS,
    ),
    _parameter("before", "query", "the id of a line: the lines before it"),
)

_PARAMETERS: Mapping[Operation, Sequence[Parameter]] = {
    **{spec.first: _INGESTION for spec in INGESTION_ENDPOINTS},
    **{spec.first: (_QUERIED_WEBSITE,) for spec in (*QUERY_ENDPOINTS, SQL, STANDARD)},
    VALUES.first: _VALUES,
    SAVED.first: (
        _SAVED_NAME,
        _WEBSITE,
        _parameter("rotate", "query", "`true` makes a new token", enum=["true", "false"]),
    ),
    SAVED_SHOW: (_SAVED_NAME, _WEBSITE),
    SAVED_DELETE: (_SAVED_NAME, _WEBSITE),
    SAVED_LIST.first: (_WEBSITE,),
    SAVED_ANSWER.first: _SAVED_ANSWER,
    LIVE.first: (
        _WEBSITE,
        _parameter("Last-Event-ID", "header", "the id of the last event that the client has"),
    ),
    SCHEMA.first: (_parameter("website_id", "query", "the website to describe, too"),),
    EXPORT.first: _EXPORT,
    ERASURES.first: (_WEBSITE,),
    ERASURES_LIST: (_WEBSITE,),
    ERASURE.first: (_required("id", "path", "the id of the erasure"),),
    SUBJECT_ACCESS.first: (_WEBSITE,),
    STORAGE.first: (_parameter("website_id", "query", "one website; required without a key"),),
    ADMIN_AUDIT.first: _AUDIT,
}
