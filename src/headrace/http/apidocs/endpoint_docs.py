"""The description of each endpoint: its summary, purpose, and examples of request and response."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from headrace.administration.bodies import NewKey, NewWebsite, OrganizationBody, WebsitePatch
from headrace.http import endpoints
from headrace.http.apidocs.schemas import SchemaResponse
from headrace.http.endpoints import EndpointSpec
from headrace.http.routes.administration import AdministrationResponse
from headrace.http.routes.erasures import ErasureResponse
from headrace.http.routes.ingest import BatchResponse, CountResponse, SingleResponse
from headrace.http.routes.operations import HealthResponse, ReadyResponse
from headrace.http.routes.result_formats import QueryResponse
from headrace.http.routes.saved import SavedTokenResponse
from headrace.http.routes.session import SessionResponse
from headrace.http.routes.standard_format import StandardResponse
from headrace.http.routes.storage import StorageResponse
from headrace.http.tracker.files import PinnedScript
from headrace.model.wire import (
    CustomEvent,
    Engagement,
    ErrorReport,
    Identification,
    PageView,
    QueryRequest,
    WebVital,
)
from headrace.model.wire_analyses import FunnelRequest, RetentionRequest, StandardRequest

INGESTION = "Ingestion"
QUERIES = "Queries"
MANAGEMENT = "Management"
ADMINISTRATION = "Administration"
SERVICE = "Service"

TAGS: Mapping[str, str] = {
    INGESTION: "Endpoints that ingest events.",
    QUERIES: "Endpoints that run queries.",
    MANAGEMENT: "Endpoints that change what is stored.",
    ADMINISTRATION: "Endpoints that change organizations, websites and keys, and tell who changed"
    " them. Their keys need the scope `manage:config`.",
    SERVICE: "Endpoints about the service itself, for operators and monitoring.",
}

EXAMPLE_REQUEST_ID = "5f0c6a1be27d4c39"
_TIMESTAMP_MS = 1_767_607_200_000


class EndpointDoc(Struct, frozen=True):
    """The description of an endpoint.

    `item` is the type of the items in a request body, None for endpoints without a body.
    `takes_arrays` is whether a body may be an array of items.
    """

    tag: str
    summary: str
    description: str
    response: type[Struct] | None = None
    example_response: Any = None
    item: type[Struct] | None = None
    example: Any = None
    takes_arrays: bool = True


_RECEIPT = {
    "id": "era_5f0c6a1be27d4c39",
    "state": "done",
    "requested": "2026-01-05T10:00:00.000Z",
    "answersClean": "2026-01-05T10:00:00.412Z",
    "done": "2026-01-05T10:08:14.020Z",
    "by": "key_1",
    "website": "web_1",
    "selector": "anonymousId",
    "subject": "hmac-sha256:7ed2…",
    "rows": {"errors": 0, "events": 12, "performance": 3, "quarantine": 0},
    "byHand": ["Exports, and other copies outside of the data directory, are not changed."],
    "lastError": None,
}


_ORGANIZATION = {
    "id": "org_Zb1Qm0cT9yWk3fVx",
    "name": "Shop",
    "created": "2026-01-05T10:00:00.000Z",
}
_WEBSITE = {
    "id": "web_f2S8H3SVFqNSutOi",
    "name": "My blog",
    "domain": "blog.example.com",
    "organization": "org_Zb1Qm0cT9yWk3fVx",
    "public": False,
    "origins": ["https://blog.example.com"],
    "retention": {"days": 365, "events": None, "errors": 30, "performance": None},
    "created": "2026-01-05T10:00:00.000Z",
}
_ENTRY = {
    "id": "worker-0-00000000000000000001-0000004096-00002.json",
    "set_aside": "2026-01-05T10:00:00.000Z",
    "stream": "events",
    "website": "web_f2S8H3SVFqNSutOi",
    "reason": "OverflowError: Python int too large to convert to C long",
}
_KEY = {
    "id": "key_Vd8nYc2Lw7RtPa4e",
    "prefix": "hr_4jQx9",
    "scopes": ["read:data"],
    "organization": "org_Zb1Qm0cT9yWk3fVx",
    "websites": ["web_f2S8H3SVFqNSutOi"],
    "home": None,
    "created": "2026-01-05T10:00:00.000Z",
    "expires": "2027-01-31T00:00:00.000Z",
    "kind": "key",
    "revoked": None,
}


def _administration_example(data: object) -> dict[str, Any]:
    return {"success": True, "data": data, "requestId": EXAMPLE_REQUEST_ID}


def _count_example(kind: str, count: int) -> dict[str, Any]:
    return {"status": "success", "type": kind, "count": count}


_COLUMN = {"type": "text", "filterable": True, "aggregatable": False}

ENDPOINT_DOCS: Mapping[EndpointSpec, EndpointDoc] = {
    endpoints.TRACK: EndpointDoc(
        INGESTION,
        "Send custom events",
        "Takes one event or an array of events. A batch costs less than single events.",
        CountResponse,
        _count_example("custom_event", 2),
        CustomEvent,
        [
            {
                "name": "signup_completed",
                "anonymousId": "anon_1",
                "sessionId": "sess_1",
                "properties": {"plan": "pro", "seats": 3},
            },
            {
                "name": "purchase",
                "timestamp": _TIMESTAMP_MS,
                "eventId": "order-1001",
                "properties": {"value": 49.5, "currency": "EUR"},
            },
        ],
    ),
    endpoints.VITALS: EndpointDoc(
        INGESTION,
        "Send web vitals",
        "Takes one measurement or an array of measurements. They become rows of `performance`.",
        CountResponse,
        _count_example("web_vitals", 1),
        WebVital,
        [
            {
                "timestamp": _TIMESTAMP_MS,
                "path": "/pricing",
                "metricName": "LCP",
                "metricValue": 1830.5,
            }
        ],
    ),
    endpoints.ERRORS: EndpointDoc(
        INGESTION,
        "Send client-side errors",
        "Takes one error report or an array of error reports. They become rows of `errors`.",
        CountResponse,
        _count_example("error", 1),
        ErrorReport,
        [
            {
                "timestamp": _TIMESTAMP_MS,
                "path": "/checkout",
                "message": "cart is undefined",
                "errorType": "TypeError",
                "filename": "app.js",
                "lineno": 12,
                "colno": 7,
            }
        ],
    ),
    endpoints.BATCH: EndpointDoc(
        INGESTION,
        "Send page views",
        "Takes the page views of browser trackers, one or an array. They become rows of `events`.",
        BatchResponse,
        {
            "status": "success",
            "batch": True,
            "processed": 1,
            "results": [{"status": "success", "type": "track", "eventId": "view-1"}],
        },
        PageView,
        [
            {
                "name": "screen_view",
                "eventId": "view-1",
                "path": "https://shop.example.com/pricing?utm_source=letter",
                "title": "Pricing",
                "referrer": "https://search.example/",
            }
        ],
    ),
    endpoints.PAGE: EndpointDoc(
        INGESTION,
        "Send one page view",
        "Takes one page view, such as the beacon that a tracker sends when a page is closed.",
        SingleResponse,
        {"status": "success", "type": "track"},
        PageView,
        {"name": "page_exit", "path": "https://shop.example.com/pricing", "time_on_page": 12.5},
        takes_arrays=False,
    ),
    endpoints.ENGAGEMENT: EndpointDoc(
        INGESTION,
        "Send how pages were used",
        "Takes what trackers measure while a page is open, one object or an array of at most 100."
        " Each becomes an event named `engagement`; keys that are no fields become its properties.",
        CountResponse,
        _count_example("engagement", 1),
        Engagement,
        [
            {
                "timestamp": _TIMESTAMP_MS,
                "path": "https://shop.example.com/pricing",
                "anonymousId": "anon_1",
                "sessionId": "sess_1",
                "exitType": "navigation",
                "activeTime": 12500,
                "maxScrollDepth": 80,
            }
        ],
    ),
    endpoints.IDENTIFY: EndpointDoc(
        INGESTION,
        "Tell whose account a visitor has",
        "Takes one object. It becomes an event named `identify`; `traits` becomes a property."
        " Nothing is merged: later events name the profile themselves, with `profileId`.",
        SingleResponse,
        {"status": "success", "type": "identify"},
        Identification,
        {"profileId": "account-17", "anonymousId": "anon_1", "traits": {"plan": "pro"}},
        takes_arrays=False,
    ),
    endpoints.QUERY: EndpointDoc(
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
    endpoints.FUNNEL: EndpointDoc(
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
    endpoints.RETENTION: EndpointDoc(
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
    endpoints.STANDARD: EndpointDoc(
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
    endpoints.VALUES: EndpointDoc(
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
    endpoints.SAVED: EndpointDoc(
        QUERIES,
        "Save a query under a name",
        "The body is that of a custom query; one with an error is refused as there. A name is 1 to"
        " 64 of `a` to `z`, `0` to `9` and `-`. The response is 201 and shows the token of the new"
        " query, or 200 where the query replaces one, whose token stays; `rotate=true` makes"
        " another one. Only a hash of the token is stored: it is not shown again. GET shows the"
        " query to whoever may query the website; DELETE ends it with its token. All count towards"
        " the query rate. Deleting a website deletes its saved queries; backups have them.",
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
        {
            "query": {
                "table": "events",
                "selects": [{"field": "*", "aggregate": "count", "alias": "views"}],
                "groupBy": ["path"],
            },
            "lastDays": 30,
            "timezone": "Europe/Berlin",
        },
        takes_arrays=False,
    ),
    endpoints.SAVED_ANSWER: EndpointDoc(
        QUERIES,
        "The answer of a saved query",
        "Answers whoever may query the website, or has the token of this query: then no"
        " `website_id` is needed, no key is looked at, and the rate is one of the token's own. The"
        " format is `json`, `csv`, `arrow`, `parquet` or `ndjson`. The ETag changes when an event"
        " of the website is stored whose time is in the range (of sessions and profiles: any"
        " event), when rows are erased or expire, when midnight moves the range, when the query is"
        " changed, and when the service is started again. A request whose If-None-Match has the"
        " ETag gets 304 and reads no rows, but counts towards the rate. With ClickHouse the ETag is"
        " made of the answer, and a 304 costs the query.",
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
    endpoints.LIVE: EndpointDoc(
        QUERIES,
        "Watch a website",
        "Streams server-sent events for as long as the client and its key stay. `event` is an item"
        " that was acknowledged, as the row that is stored of it: `table`, and `row` with all"
        " columns, `properties` as the object that was sent, without `fingerprint`. `refused` is a"
        " call that was refused as a whole: `path`, `code` and `errors`, without what was sent,"
        " and only of callers who may write to the website. `missed` tells"
        " how many items were left out for a client that was too slow or came back late, null where"
        " nobody knows. `Last-Event-ID` goes on within the last 1,000 items. A comment comes every"
        " 15 seconds. A key has 20 streams at most; opening one counts as a query. Of several"
        " machines, the one that is called shows what it has accepted.",
    ),
    endpoints.SCHEMA: EndpointDoc(
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
    endpoints.EXPORT: EndpointDoc(
        QUERIES,
        "Export all rows",
        "Streams all stored columns of the rows of one table and website as NDJSON, Parquet, CSV or"
        " an Arrow stream: every row that was acknowledged when the request arrived, once, and none"
        " that came later. Rows of bots are in it. The key needs the scope `manage:data`; no query"
        " rate counts exports. Two exports of a website run at a time, a third gets 503. A response"
        " that is cut off ends without the last chunk of its transfer coding.",
    ),
    endpoints.ERASURES: EndpointDoc(
        MANAGEMENT,
        "Erase rows",
        "Erases all rows of a visitor, session, profile or event, or all events whose properties"
        " have a value: exactly one of `anonymousId`, `sessionId`, `profileId`, `eventId` and"
        " `property`. `withVisitors` also erases the rows of all anonymous ids that the rows of a"
        " profile have. The response is 202 with the receipt when no answer has the rows any more;"
        " files are cleaned within ten minutes, then the state is `done`. With `dryRun` it is 200"
        " with the number of rows. Events that arrive later are stored. The key needs the scope"
        " `manage:data`. GET with the same parameter lists the receipts, newest first.",
        ErasureResponse,
        {"success": True, "data": _RECEIPT, "requestId": EXAMPLE_REQUEST_ID},
        example={"anonymousId": "v-1f7c"},
    ),
    endpoints.ERASURE: EndpointDoc(
        MANAGEMENT,
        "Receipt of an erasure",
        "Returns the state and the receipt of an erasure of a website that the key may manage.",
        ErasureResponse,
        {"success": True, "data": _RECEIPT, "requestId": EXAMPLE_REQUEST_ID},
    ),
    endpoints.SESSION: EndpointDoc(
        MANAGEMENT,
        "The session of the page",
        "POST signs in with a key that has the scope `read:data`, or with the code of a link that"
        " `headrace sign-in` prints, and sets a cookie for twelve hours; GET tells who is signed"
        " in; DELETE signs out. The cookie has the rights of its key everywhere below `/v1`, for"
        " requests of the page itself alone; a key in a header wins. After ten failed sign-ins in"
        " a minute an address has to wait.",
        SessionResponse,
        {
            "success": True,
            "data": {
                "scopes": ["read:data"],
                "websites": [{"id": "web_3b9d", "name": "Blog", "domain": "blog.example"}],
                "expires": "2026-07-02T04:00:00.000Z",
            },
            "requestId": EXAMPLE_REQUEST_ID,
        },
        example={"code": "3XJ0c9"},
    ),
    endpoints.STORAGE: EndpointDoc(
        QUERIES,
        "Describe what is stored",
        "Returns, for each table of the website, how many rows answers see (bots included), how"
        " many have expired and are not deleted yet, the size on disk of both, the time of the"
        " first and last row, and how long rows are kept. Without `website_id`, for each website"
        " that the key reaches. Counts towards the query rate.",
        StorageResponse,
        {
            "success": True,
            "data": [
                {
                    "website": "web_f2S8H3SVFqNSutOi",
                    "table": "events",
                    "rows": 120000,
                    "expired": 4000,
                    "bytes": 14500000,
                    "oldest": "2026-01-01T00:00:00.312Z",
                    "newest": "2026-01-30T23:59:58.020Z",
                    "retainDays": 30,
                    "cutoff": "2026-01-01T00:00:00.000Z",
                }
            ],
            "requestId": EXAMPLE_REQUEST_ID,
        },
    ),
    endpoints.ADMIN_ORGANIZATIONS: EndpointDoc(
        ADMINISTRATION,
        "Create an organization",
        "Only a key of the organization `default` that is not limited to websites may. GET lists"
        " all organizations to such a key, and none to others.",
        AdministrationResponse,
        _administration_example(_ORGANIZATION),
        OrganizationBody,
        {"name": "Shop"},
        takes_arrays=False,
    ),
    endpoints.ADMIN_ORGANIZATION: EndpointDoc(
        ADMINISTRATION,
        "Rename an organization",
        "GET returns the organization. DELETE deletes it with its keys; its websites remain, but"
        " accept no events.",
        AdministrationResponse,
        _administration_example(_ORGANIZATION),
        OrganizationBody,
        {"name": "Shop"},
        takes_arrays=False,
    ),
    endpoints.ADMIN_WEBSITES: EndpointDoc(
        ADMINISTRATION,
        "Create a website",
        "The id of the website is not secret. GET lists the websites in reach, oldest first.",
        AdministrationResponse,
        _administration_example(_WEBSITE),
        NewWebsite,
        {"name": "My blog", "origins": ["https://blog.example.com"], "retention": {"days": 365}},
        takes_arrays=False,
    ),
    endpoints.ADMIN_WEBSITE: EndpointDoc(
        ADMINISTRATION,
        "Change a website",
        "What the body does not name stays as it is. GET returns the website. DELETE deletes it;"
        " its rows remain on disk, but cannot be queried any more.",
        AdministrationResponse,
        _administration_example(_WEBSITE),
        WebsitePatch,
        {"public": True, "retention": {"errors": 30}},
        takes_arrays=False,
    ),
    endpoints.ADMIN_KEYS: EndpointDoc(
        ADMINISTRATION,
        "Create an API key",
        "The response has the secret as `key`. Only its hash is stored: it is not shown again. The"
        " new key reaches no further than the one that creates it, but may have other scopes. GET"
        " lists the keys and sessions in reach without secrets, oldest first.",
        AdministrationResponse,
        _administration_example({"key": "hr_4jQx9…", **_KEY}),
        NewKey,
        {
            "scopes": ["read:data"],
            "websites": ["web_f2S8H3SVFqNSutOi"],
            "expires": "2027-01-31",
        },
        takes_arrays=False,
    ),
    endpoints.ADMIN_KEY: EndpointDoc(
        ADMINISTRATION,
        "Describe an API key",
        "Returns a key or session without its secret. DELETE revokes it, with the sessions that"
        " were begun with it. A key cannot be changed.",
        AdministrationResponse,
        _administration_example(_KEY),
    ),
    endpoints.ADMIN_QUARANTINE: EndpointDoc(
        ADMINISTRATION,
        "List quarantined entries",
        "Returns what the store of this machine rejected, by log and offset: events of the websites"
        " in reach. Operators also get entries of deleted websites, and records that cannot be"
        " decoded, which have no website. Entries whose files cannot be decoded are left out.",
        AdministrationResponse,
        _administration_example([_ENTRY]),
    ),
    endpoints.ADMIN_ENTRY: EndpointDoc(
        ADMINISTRATION,
        "Show a quarantined entry",
        "Returns an entry with its content: the event as it was to be stored, and where it came"
        " from.",
        AdministrationResponse,
        _administration_example(
            {
                **_ENTRY,
                "content": {
                    "log": "worker-0",
                    "position": {"segment": 1, "offset": 4096},
                    "reason": "OverflowError: Python int too large to convert to C long",
                    "stream": "events",
                    "index": 2,
                    "item": {"website_id": "web_f2S8H3SVFqNSutOi", "name": "bought"},
                },
            }
        ),
    ),
    endpoints.ADMIN_RETRY: EndpointDoc(
        ADMINISTRATION,
        "Retry a quarantined entry",
        "Hands an entry to the store once more, as `headrace quarantine retry` does, and takes it"
        " out of the quarantine. What the store rejects again is quarantined again under a new id."
        " 503 while the engine does not load.",
        AdministrationResponse,
        _administration_example({**_ENTRY, "retried": True}),
    ),
    endpoints.ADMIN_AUDIT: EndpointDoc(
        ADMINISTRATION,
        "List changes",
        "Returns the lines of the audit log in reach, newest first: who changed what, with the"
        " object from before and after the change. `by` is the id of a key, `session ID`, or"
        " `cli USER` for a command. Only operators see the lines of organizations, and of what"
        " concerns several organizations. No rate counts the call.",
        AdministrationResponse,
        _administration_example(
            [
                {
                    "id": "aud_c7Qx2mZk9RtVb1Wd",
                    "time": "2026-01-05T10:00:00.000Z",
                    "by": "key_Vd8nYc2Lw7RtPa4e",
                    "action": "website.update",
                    "object": "web_f2S8H3SVFqNSutOi",
                    "before": {**_WEBSITE, "name": "Blog"},
                    "after": _WEBSITE,
                }
            ]
        ),
    ),
    endpoints.HEALTH: EndpointDoc(
        SERVICE,
        "Liveness",
        "Responds with 200 while the process is alive.",
        HealthResponse,
        {"status": "alive"},
    ),
    endpoints.READY: EndpointDoc(
        SERVICE,
        "Readiness",
        "Responds with 200 if events can be made durable and queries can be answered, else with"
        " 503. Reports the status of each part.",
        ReadyResponse,
        {"status": "ready", "parts": {"log": "ready", "engine": "ready"}},
    ),
    endpoints.METRICS: EndpointDoc(
        SERVICE, "Metrics", "All metrics of all processes, in the Prometheus text format."
    ),
    endpoints.OPENAPI: EndpointDoc(SERVICE, "This description", "An OpenAPI 3.1 document."),
    endpoints.DOCS: EndpointDoc(
        SERVICE, "This page", "The same description, as a page for people."
    ),
    endpoints.TRACKER: EndpointDoc(
        SERVICE,
        "The tracker",
        "The script that pages load: page views, errors, web vitals and events of a website.",
    ),
    endpoints.TRACKER_MAP: EndpointDoc(SERVICE, "Source map of the tracker", "For debuggers."),
    endpoints.TRACKER_EXTRAS: EndpointDoc(
        SERVICE,
        "The second file of the tracker",
        "Web vitals, errors and clicks; the tracker loads it when its page is idle.",
    ),
    endpoints.TRACKER_EXTRAS_MAP: EndpointDoc(
        SERVICE, "Source map of the second file", "For debuggers."
    ),
    endpoints.TRACKER_PINNED: EndpointDoc(
        SERVICE,
        "A version of the tracker",
        "The script under the hash of its content; it never changes. Every release keeps the"
        " versions of earlier ones.",
    ),
    endpoints.TRACKER_EXTRAS_PINNED: EndpointDoc(
        SERVICE,
        "A version of the second file",
        "The same for the second file, which the tracker loads by hash and integrity value.",
    ),
    endpoints.TRACKER_MANIFEST: EndpointDoc(
        SERVICE,
        "How to pin the tracker",
        "The path of the current version of the tracker, and its integrity value for the"
        " attribute `integrity` of a script element.",
        PinnedScript,
        {
            "path": "/headrace.5f0c6a1b.js",
            "integrity": "sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC",
        },
    ),
}
"""Every endpoint, in the order of the reference."""
