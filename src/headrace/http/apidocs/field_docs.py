"""What the fields of bodies mean, and what their types cannot say of them."""

from collections.abc import Mapping
from typing import Any

from headrace.ingest.receive.timestamps import EARLIEST_MS
from headrace.model.catalog import PROMOTED_COLUMNS, QUERY_LIMITS, Aggregate, Operator, table_names

Schema = dict[str, Any]

SCHEMA_PREFIX = "#/components/schemas/"

_ITEM_FIELDS: Mapping[str, str] = {
    "name": "what happened, in snake_case",
    "properties": "custom properties; plain values (texts, numbers, booleans) are asked fastest",
    "anonymousId": "the visitor; made on the server where it is missing and no key is used",
    "sessionId": "the session; events that share it are one row of `sessions`",
    "timestamp": "when it happened, not before 2000: Unix milliseconds, ISO 8601 or RFC 2822",
    "namespace": "groups events",
    "source": "what sent it",
    "websiteId": "the website it goes to; without a key the request must name the same",
    "eventId": "makes the item safe to send again: the first of equal ones within 7 days is stored",
    "path": "path of the page, or its whole URL, which is then split",
    "url": "whole URL of the page",
    "ip": "the visitor's address, with an API key only; used to enrich the item, then forgotten",
    "userAgent": "the visitor's User-Agent, likewise; at most 2,048 characters",
    "metricName": "which web vital",
    "metricValue": "its value; finite",
    "message": "what the error says; cut at 4,096 characters",
    "filename": "source file",
    "lineno": "line number",
    "colno": "column number",
    "stack": "stack trace; cut at 65,536 characters",
    "errorType": "type of the error, such as TypeError",
    "level": "how bad it is; `error` where it is missing",
}

_PROMOTED_FIELDS: Mapping[str, str] = {
    column.name: f"{column.description}; lifted where it is a {column.kind.value}"
    for column in PROMOTED_COLUMNS
}

FIELD_DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {
    "CustomEvent": _ITEM_FIELDS,
    "PageView": {**_PROMOTED_FIELDS, **_ITEM_FIELDS},
    "WebVital": _ITEM_FIELDS,
    "ErrorReport": _ITEM_FIELDS,
    "QueryRequest": {
        "query": "what to compute",
        "startDate": "first day, YYYY-MM-DD in the timezone",
        "endDate": "last day, included",
        "timezone": "IANA name of the timezone of days, hours and bare datetimes",
        "granularity": "gives every row a bucket of time, named `date`",
        "limit": f"most rows; over {QUERY_LIMITS['maxLimit']:,} is cut to that",
        "orderBy": "order of the rows, in place of the usual one",
        "offset": "rows to leave out at the beginning",
        "fill": "adds the empty buckets of the range; needs granularity",
    },
    "Query": {
        "table": "the table to ask",
        "selects": "the outputs",
        "filters": "conditions, joined by AND",
        "groupBy": "columns whose values make the groups",
    },
    "Select": {
        "field": "a column, `properties.KEY`, or `*` for rows",
        "aggregate": "how the values become one",
        "alias": "name of the output; `AGGREGATE_FIELD` where it is missing",
    },
    "Filter": {
        "field": "a filterable column or `properties.KEY`",
        "operator": "how to compare",
        "value": "a value of the column's type; an array for in and not_in",
    },
    "OrderBy": {
        "field": "name of an output",
        "direction": "`asc` where it is missing",
    },
    "CountResponse": {
        "status": "always `success`",
        "type": "the kind of items",
        "count": "items received and accepted; one that repeats an earlier one counts",
    },
    "BatchResponse": {
        "status": "always `success`",
        "batch": "always true",
        "processed": "items received and accepted",
        "results": "one for each item, in their order",
    },
    "BatchItemResult": {
        "status": "always `success`",
        "type": "always `track`",
        "eventId": "the item's `eventId`; null where none was sent",
    },
    "PageResponse": {"status": "always `success`", "type": "always `track`"},
    "IngestionError": {
        "status": "always `error`",
        "message": "what is wrong, for people",
        "code": "what is wrong, for programs",
        "requestId": "the call's id, as in X-Request-Id",
        "errors": "the faults of the body, where single items or fields are at fault",
    },
    "FieldError": {
        "index": "the item, counted from 0",
        "field": "the top-level field; empty for the item itself",
        "message": "what is wrong with it",
    },
    "QueryError": {
        "success": "always false",
        "error": "what is wrong, for people: the cause, then the culprit",
        "code": "what is wrong, for programs",
        "requestId": "the call's id, as in X-Request-Id",
    },
    "QueryResponse": {
        "success": "always true",
        "data": "one object for each row: `date`, group columns and outputs by name",
        "meta": "what is to be said of the rows",
        "requestId": "the call's id, as in X-Request-Id",
    },
    "QueryMeta": {
        "rowCount": "rows in `data`",
        "executionTime": "milliseconds",
        "limit": "the limit that was used",
        "truncated": "whether more rows existed",
    },
    "SchemaResponse": {
        "tables": "every table with its columns",
        "aggregates": "names of the aggregate functions",
        "operators": "names of the filter operators",
        "limits": "all limits of a query, by name",
    },
    "SchemaTable": {
        "name": "name in a query",
        "description": "what a row is",
        "columns": "its columns",
    },
    "SchemaColumn": {
        "name": "name in a query",
        "type": "what its values are",
        "filterable": "whether a filter may name it",
        "aggregatable": "whether sum, avg, max, min and percentiles take it",
        "description": "what it means",
    },
    "HealthResponse": {"status": "always `alive`"},
    "ReadyResponse": {"status": "the whole", "parts": "each part by name"},
}
"""A sentence for every field of every schema."""

_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]%s)?"
_ISO_8601 = (
    "^[2-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([Tt ]"
    + _CLOCK % "([.,][0-9]+)?"
    + "([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])?)?$"
)
_RFC_2822 = (
    "^((Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?(0?[1-9]|[12][0-9]|3[01])"
    " (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [2-9][0-9]{3} "
    + _CLOCK % ""
    + " (UT|UTC|GMT|[ECMP][SD]T|[+-]([01][0-9]|2[0-3])[0-5][0-9])$"
)
_TIMESTAMP: list[Schema] = [
    {"type": "number", "minimum": EARLIEST_MS},
    {"type": "string", "pattern": _ISO_8601},
    {"type": "string", "pattern": _RFC_2822},
]
_NULL: Schema = {"type": "null"}


def _optional(**schema: object) -> Schema:
    return {"anyOf": [schema, _NULL]}


def _list_of(name: str, limit: str) -> Schema:
    items = {"$ref": f"{SCHEMA_PREFIX}{name}"}
    return {"type": "array", "items": items, "maxItems": QUERY_LIMITS[limit]}


SCHEMA_OVERRIDES: Mapping[tuple[str, str], Schema] = {
    ("CustomEvent", "timestamp"): {"anyOf": [*_TIMESTAMP, _NULL]},
    ("PageView", "timestamp"): {"anyOf": [*_TIMESTAMP, _NULL]},
    ("WebVital", "timestamp"): {"anyOf": _TIMESTAMP},
    ("ErrorReport", "timestamp"): {"anyOf": _TIMESTAMP},
    ("QueryRequest", "startDate"): {"type": "string", "format": "date"},
    ("QueryRequest", "endDate"): {"type": "string", "format": "date"},
    ("QueryRequest", "timezone"): {**_optional(type="string", minLength=1), "default": "UTC"},
    ("QueryRequest", "granularity"): _optional(enum=["hourly", "daily"]),
    ("QueryRequest", "limit"): {
        **_optional(type="integer", minimum=1),
        "default": QUERY_LIMITS["defaultLimit"],
    },
    ("QueryRequest", "offset"): {
        **_optional(type="integer", minimum=0, maximum=QUERY_LIMITS["maxOffset"]),
        "default": 0,
    },
    ("QueryRequest", "fill"): {**_optional(type="boolean"), "default": False},
    ("QueryRequest", "orderBy"): _optional(**_list_of("OrderBy", "maxOrderBy")),
    ("Query", "table"): {"enum": list(table_names())},
    ("Query", "selects"): {**_list_of("Select", "maxSelects"), "minItems": 1},
    ("Query", "filters"): _optional(**_list_of("Filter", "maxFilters")),
    ("Query", "groupBy"): _optional(
        type="array", items={"type": "string"}, maxItems=QUERY_LIMITS["maxGroupBy"]
    ),
    ("Select", "aggregate"): {"enum": [aggregate.value for aggregate in Aggregate]},
    ("Select", "alias"): _optional(
        type="string", minLength=1, maxLength=QUERY_LIMITS["maxAliasLength"]
    ),
    ("Filter", "operator"): {"enum": [operator.value for operator in Operator]},
    ("OrderBy", "direction"): _optional(enum=["asc", "desc"]),
    ("CountResponse", "type"): {"enum": ["custom_event", "web_vitals", "error"]},
    ("BatchResponse", "batch"): {"const": True},
    ("BatchItemResult", "type"): {"const": "track"},
    ("PageResponse", "type"): {"const": "track"},
    ("QueryResponse", "success"): {"const": True},
    ("QueryError", "success"): {"const": False},
}
"""What types alone cannot say; the decoder takes some things loosely, for better refusals."""
