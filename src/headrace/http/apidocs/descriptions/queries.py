"""Endpoints that run queries, and that export."""

from collections.abc import Mapping

from headrace.http import endpoint_operations as operations
from headrace.http import endpoints
from headrace.http.apidocs.descriptions.description import (
    EXAMPLE_REQUEST_ID,
    QUERIES,
    OperationDoc,
)
from headrace.http.apidocs.schemas import SchemaResponse
from headrace.http.endpoint_spec import Operation
from headrace.http.routes.formats.query_results import QueryResponse
from headrace.http.routes.formats.sql_results import SqlResponse
from headrace.http.routes.formats.standard_results import StandardResponse
from headrace.http.routes.saved.definitions import (
    SavedDefinitionResponse,
    SavedListResponse,
    SavedTokenResponse,
)
from headrace.model.wire import (
    QueryRequest,
)
from headrace.model.wire_analyses import FunnelRequest, RetentionRequest, StandardRequest

_COLUMN = {"type": "text", "filterable": True, "aggregatable": False}
_SAVED_QUERY = {
    "query": {
        "table": "events",
        "selects": [{"field": "*", "aggregate": "count", "alias": "views"}],
        "groupBy": ["path"],
    },
    "lastDays": 30,
    "timezone": "Europe/Berlin",
}
_SAVED = {
    "success": True,
    "data": {
        "name": "top-pages",
        "query": _SAVED_QUERY,
        "created": "2026-01-05T10:00:00.000Z",
        "updated": "2026-01-31T12:00:00.000Z",
        "url": "https://events.example.com/v1/saved/top-pages.json?website_id=web_1",
    },
    "requestId": EXAMPLE_REQUEST_ID,
}

DESCRIPTIONS: Mapping[Operation, OperationDoc] = {
    endpoints.QUERY.first: OperationDoc(
        QUERIES,
        "Run a query",
        "Computes aggregates over one table of one website. See"
        " [Tables and columns](#tables-and-columns) and [Query language](#query-language).",
        QueryResponse,
        {
            "success": True,
            "data": [
                {"path": "/pricing", "views": 120, "visitors": 86},
                {"path": "/", "views": 97, "visitors": 91},
            ],
            "meta": {
                "rowCount": 2,
                "executionTime": 7.4,
                "limit": 10,
                "truncated": False,
                "rowsRead": 21504,
                "bytesRead": 1225728,
                "cached": False,
                "watermark": "2026-01-31T12:00:00.000Z",
            },
            "requestId": EXAMPLE_REQUEST_ID,
        },
        QueryRequest,
        {
            "query": {
                "table": "events",
                "selects": [
                    {"field": "*", "aggregate": "count", "alias": "views"},
                    {"field": "anonymous_id", "aggregate": "uniq", "alias": "visitors"},
                ],
                "filters": [
                    {"field": "event_name", "operator": "eq", "value": "screen_view"},
                    {"field": "country", "operator": "in", "value": ["DE", "AT", "CH"]},
                ],
                "groupBy": ["path"],
            },
            "startDate": "2026-01-01",
            "endDate": "2026-01-31",
            "timezone": "Europe/Berlin",
            "limit": 10,
        },
        takes_arrays=False,
    ),
    endpoints.FUNNEL.first: OperationDoc(
        QUERIES,
        "Run a funnel",
        "Counts who took a first step, and how many of them took each next one in time. See"
        " [Funnels](#funnels).",
        QueryResponse,
        {
            "success": True,
            "data": [
                {"step": 1, "name": "cart", "count": 120, "rate": 1, "medianSeconds": None},
                {"step": 2, "name": "paid", "count": 30, "rate": 0.25, "medianSeconds": 94.5},
            ],
            "meta": {
                "rowCount": 2,
                "executionTime": 18.2,
                "limit": 1000,
                "truncated": False,
                "rowsRead": 81920,
                "bytesRead": 5570560,
                "cached": False,
                "watermark": "2026-01-31T12:00:00.000Z",
            },
            "requestId": EXAMPLE_REQUEST_ID,
        },
        FunnelRequest,
        {
            "steps": [
                {
                    "name": "cart",
                    "filters": [{"field": "path", "operator": "eq", "value": "/cart"}],
                },
                {
                    "name": "paid",
                    "filters": [{"field": "event_name", "operator": "eq", "value": "purchase"}],
                },
            ],
            "window": 3600,
            "startDate": "2026-01-01",
            "endDate": "2026-01-31",
        },
        takes_arrays=False,
    ),
    endpoints.RETENTION.first: OperationDoc(
        QUERIES,
        "Run a retention query",
        "Groups people by when their first event came, and counts how many of each cohort came back"
        " in each period. See [Retention](#retention).",
        QueryResponse,
        {
            "success": True,
            "data": [
                {"date": "2026-01-05", "size": 80, "returned": [31, 22, None]},
                {"date": "2026-01-12", "size": 64, "returned": [25, None, None]},
            ],
            "meta": {
                "rowCount": 2,
                "executionTime": 18.2,
                "limit": 10000,
                "truncated": False,
                "rowsRead": 81920,
                "bytesRead": 5570560,
                "cached": False,
                "watermark": "2026-01-31T12:00:00.000Z",
            },
            "requestId": EXAMPLE_REQUEST_ID,
        },
        RetentionRequest,
        {
            "first": {
                "filters": [{"field": "event_name", "operator": "eq", "value": "signup_completed"}]
            },
            "return": {"filters": []},
            "granularity": "weekly",
            "periods": 3,
            "startDate": "2026-01-05",
            "endDate": "2026-01-18",
        },
        takes_arrays=False,
    ),
    endpoints.STANDARD.first: OperationDoc(
        QUERIES,
        "Run standard queries",
        "Answers several questions of a dashboard at once, each equal to a custom query, with"
        " fewer scans. Their rate is counted apart from that of the other queries. See"
        " [Standard queries](#standard-queries).",
        StandardResponse,
        {
            "success": True,
            "data": {
                "summary": {
                    "visitors": 86,
                    "sessions": 101,
                    "pageViews": 217,
                    "events": 240,
                    "bounceRate": 0.25,
                    "medianDuration": 31.5,
                },
                "pages": [
                    {"path": "/pricing", "views": 120, "visitors": 86},
                    {"path": "/", "views": 97, "visitors": 91},
                ],
            },
            "meta": {
                "rowCount": 3,
                "executionTime": 12.9,
                "limit": 2,
                "truncated": True,
                "rowsRead": 64512,
                "bytesRead": 3677184,
                "cached": False,
                "watermark": "2026-01-31T12:00:00.000Z",
            },
            "requestId": EXAMPLE_REQUEST_ID,
        },
        StandardRequest,
        {
            "types": ["summary", "pages"],
            "filters": [{"field": "country", "operator": "in", "value": ["DE", "AT", "CH"]}],
            "lastDays": 30,
            "timezone": "Europe/Berlin",
            "limit": 2,
        },
        takes_arrays=False,
    ),
    endpoints.SQL.first: OperationDoc(
        QUERIES,
        "Show the SQL of a query",
        "Returns the statement of a query with its values as literals, and runs nothing. Clients of"
        " the ClickHouse servers run it as it is, and so does chDB over a restored backup. The"
        " body is that of a query. Comments name the columns. The statement gives one row more than"
        " the limit where there are more, days and times as numbers, and no empty buckets: `fill`"
        " adds them later. `lastDays` counts from today. With `Accept: application/sql` the"
        " response is the text alone. The rate is that of queries.",
        SqlResponse,
        {
            "success": True,
            "sql": (
                "-- c0: path\n-- c1: views\n"
                "SELECT\n    path AS c0,\n    count() AS c1\nFROM events\n…"
            ),
            "requestId": EXAMPLE_REQUEST_ID,
        },
        QueryRequest,
        {
            "query": {
                "table": "events",
                "selects": [{"field": "*", "aggregate": "count", "alias": "views"}],
                "groupBy": ["path"],
            },
            "lastDays": 30,
            "limit": 10,
        },
        takes_arrays=False,
    ),
    endpoints.VALUES.first: OperationDoc(
        QUERIES,
        "List the values of a column",
        "Returns the most frequent values of a column, with the number of their rows; those of"
        " equal frequency by value. Missing values are left out. `search` finds texts that contain"
        " it in any case; it is `Invalid search` for columns that have no texts. An unknown"
        " parameter is 400. The formats, the limits and the rate are those of queries.",
        QueryResponse,
        {
            "success": True,
            "data": [{"value": "/pricing", "count": 120}, {"value": "/", "count": 97}],
            "meta": {
                "rowCount": 2,
                "executionTime": 4.1,
                "limit": 100,
                "truncated": False,
                "rowsRead": 8192,
                "bytesRead": 409600,
                "cached": False,
                "watermark": "2026-01-31T12:00:00.000Z",
            },
            "requestId": EXAMPLE_REQUEST_ID,
        },
    ),
    endpoints.SAVED.first: OperationDoc(
        QUERIES,
        "Save a query under a name",
        "The body is that of a custom query; one with an error is refused as there. A name is 1 to"
        " 64 of `a` to `z`, `0` to `9` and `-`. The response is 201 and shows the token of the new"
        " query, or 200 where the query replaces one, whose token stays; `rotate=true` makes"
        " another one, and an unknown parameter is 400. Only a hash of the token is stored: it is"
        " not shown again. Saving counts towards the query rate. Deleting a website deletes its"
        " saved queries; backups have them.",
        SavedTokenResponse,
        {
            "success": True,
            "data": {
                "name": "top-pages",
                "token": "hq_4jQx9…",
                "url": "https://events.example.com/v1/saved/top-pages.json?token=hq_4jQx9…",
            },
            "requestId": EXAMPLE_REQUEST_ID,
        },
        QueryRequest,
        _SAVED_QUERY,
        takes_arrays=False,
    ),
    operations.SAVED_SHOW: OperationDoc(
        QUERIES,
        "Show a saved query",
        "Returns the query as it was sent, with the times of its first and last change and the URL"
        " of its answer, to callers that may query the website. It counts towards the query rate.",
        SavedDefinitionResponse,
        _SAVED,
    ),
    operations.SAVED_DELETE: OperationDoc(
        QUERIES,
        "Delete a saved query",
        "Ends the query with its token, and returns what was deleted. It takes the rights of"
        " saving and counts towards the query rate.",
        SavedDefinitionResponse,
        _SAVED,
    ),
    endpoints.SAVED_LIST.first: OperationDoc(
        QUERIES,
        "List the saved queries",
        "Returns the names of a website's saved queries, in order, with the times of their first"
        " and last change and the URL of each answer. Tokens are not shown: only their hashes are"
        " stored. It takes the rights of saving and counts towards the query rate.",
        SavedListResponse,
        {
            "success": True,
            "data": [
                {
                    "name": "top-pages",
                    "created": "2026-01-05T10:00:00.000Z",
                    "updated": "2026-01-31T12:00:00.000Z",
                    "url": "https://events.example.com/v1/saved/top-pages.json?website_id=web_1",
                }
            ],
            "requestId": EXAMPLE_REQUEST_ID,
        },
    ),
    endpoints.SAVED_ANSWER.first: OperationDoc(
        QUERIES,
        "The answer of a saved query",
        "Answers callers that may query the website, or have the token of this query: then no"
        " `website_id` is needed, no key is looked at, and the rate is one of the token's own. The"
        " format is `json`, `csv`, `arrow`, `parquet` or `ndjson`. The ETag changes when an event"
        " of the website is stored whose time is in the range (of sessions and profiles: any"
        " event), when rows are erased or expire, when midnight moves the range, when the query is"
        " changed, and when the service has crashed or been upgraded. A request whose"
        " If-None-Match has the ETag gets 304 and reads no rows, but counts towards the rate. With"
        " ClickHouse the ETag is made of the answer, and a 304 costs the query.",
        QueryResponse,
        {
            "success": True,
            "data": [{"path": "/pricing", "views": 120}],
            "meta": {
                "rowCount": 1,
                "executionTime": 5.1,
                "limit": 1000,
                "truncated": False,
                "rowsRead": 21504,
                "bytesRead": 516096,
                "cached": False,
                "watermark": "2026-01-31T12:00:00.000Z",
            },
            "requestId": EXAMPLE_REQUEST_ID,
        },
    ),
    endpoints.LIVE.first: OperationDoc(
        QUERIES,
        "Watch a website",
        "Streams server-sent events for as long as the client and its key stay. `event` is an item"
        " that was acknowledged, as the row that is stored of it: `table`, and `row` with all"
        " columns, `properties` as the object that was sent; the `fingerprint` of an error is null"
        " while the store is away. `refused` is a"
        " call that was refused as a whole: `path`, `code` and `errors`, without what was sent,"
        " and only of callers who may write to the website. `missed` tells"
        " how many items were left out for a client that was too slow or came back late, null where"
        " nobody knows. `Last-Event-ID` goes on within the last 1,000 items; a new stream begins"
        " with an id, so that it goes on before its first item, too. A comment comes every"
        " 15 seconds. A key has 20 streams at most; opening one counts as a query. Of several"
        " machines, the one that is called shows what it has accepted.",
    ),
    endpoints.SCHEMA.first: OperationDoc(
        QUERIES,
        "Describe the query schema",
        "Lists all tables, columns, functions, operators and limits. That needs no credentials and"
        " does not count towards the rate limit. With `website_id`, credentials and rate are those"
        " of queries, and the response also has what the events of the website have: names and"
        " top-level keys of properties of the last 30 days in UTC, today included; up to 1,000"
        " each, the most frequent first, those of equal frequency by name. Bots are left out.",
        SchemaResponse,
        {
            "tables": [
                {
                    "name": "events",
                    "description": "page views and custom events",
                    "columns": [
                        {"name": "path", **_COLUMN, "description": "path of the page"},
                    ],
                }
            ],
            "aggregates": ["count", "uniq"],
            "operators": ["eq", "ne"],
            "limits": {"maxSelects": 10},
            "eventNames": [
                {"name": "purchase", "count": 120, "lastSeen": "2026-01-31T11:58:04.120Z"}
            ],
            "properties": [{"key": "plan", "kinds": ["text"], "count": 118}],
        },
    ),
    endpoints.EXPORT.first: OperationDoc(
        QUERIES,
        "Export all rows",
        "Streams all stored columns of the rows of one table and website as NDJSON, Parquet, CSV or"
        " an Arrow stream: every row that was acknowledged when the request arrived, once, and none"
        " that came later. Rows of bots are in it. The key needs the scope `manage:data`; no query"
        " rate counts exports. An unknown parameter is 400. Two exports of a website run at a time,"
        " a third gets 503. A response that is cut off ends without the last chunk of its transfer"
        " coding.",
    ),
}
