"""Endpoints that erase, that sign in, and that say what is stored."""

from collections.abc import Mapping

from headrace.http import endpoint_operations as operations
from headrace.http import endpoints
from headrace.http.apidocs.descriptions.description import (
    EXAMPLE_REQUEST_ID,
    MANAGEMENT,
    QUERIES,
    OperationDoc,
    ResponseDoc,
)
from headrace.http.endpoint_spec import Operation
from headrace.http.routes.rows.erasures import (
    ErasureDryRunResponse,
    ErasureListResponse,
    ErasureResponse,
)
from headrace.http.routes.rows.storage import StorageResponse
from headrace.http.routes.session import SessionResponse, SignInBody

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
_SESSION = {
    "success": True,
    "data": {
        "scopes": ["read:data"],
        "websites": [{"id": "web_3b9d", "name": "Blog", "domain": "blog.example"}],
        "expires": "2026-07-02T04:00:00.000Z",
    },
    "requestId": EXAMPLE_REQUEST_ID,
}

DESCRIPTIONS: Mapping[Operation, OperationDoc] = {
    endpoints.ERASURES.first: OperationDoc(
        MANAGEMENT,
        "Erase rows",
        "Erases all rows of a visitor, session, profile or event, or all events whose properties"
        " have a value: exactly one of `anonymousId`, `sessionId`, `profileId`, `eventId` and"
        " `property`. `withVisitors` also erases the rows of all anonymous ids that the rows of a"
        " profile have. The response is 202 with the receipt when no answer has the rows any more;"
        " files are cleaned within ten minutes, then the state is `done`. Where a step fails, such"
        " as while a replica of ClickHouse is away, the response comes a few seconds later:"
        " `answersClean` is null, `lastError` has the reason, and the erasure goes on by itself."
        " With `dryRun` it is 200"
        " with the number of rows. Events that arrive later are stored. The key needs the scope"
        " `manage:data`.",
        ErasureResponse,
        {"success": True, "data": _RECEIPT, "requestId": EXAMPLE_REQUEST_ID},
        example={"anonymousId": "v-1f7c"},
        responses_by_status={
            200: ResponseDoc(
                ErasureDryRunResponse,
                {
                    "success": True,
                    "data": {"dryRun": True, "rows": _RECEIPT["rows"]},
                    "requestId": EXAMPLE_REQUEST_ID,
                },
            )
        },
    ),
    operations.ERASURES_LIST: OperationDoc(
        MANAGEMENT,
        "List erasures",
        "Returns the receipts of a website's erasures, newest first. The key needs the scope"
        " `manage:data`. No rate counts the call.",
        ErasureListResponse,
        {"success": True, "data": [_RECEIPT], "requestId": EXAMPLE_REQUEST_ID},
    ),
    endpoints.SUBJECT_ACCESS.first: OperationDoc(
        MANAGEMENT,
        "Show what is stored of a subject",
        "Streams a JSON object for each row of a visitor, session, profile or event, with `table`"
        " and all columns: exactly one of the selectors of an erasure. `withVisitors` also shows"
        " the rows of all anonymous ids that the rows of a profile have. Rows that retention hides"
        " and quarantined ones are included. The key needs the scope `manage:data`.",
        example={"anonymousId": "v-1f7c"},
    ),
    endpoints.ERASURE.first: OperationDoc(
        MANAGEMENT,
        "Receipt of an erasure",
        "Returns the state and the receipt of an erasure of a website that the key may manage.",
        ErasureResponse,
        {"success": True, "data": _RECEIPT, "requestId": EXAMPLE_REQUEST_ID},
    ),
    endpoints.SESSION.first: OperationDoc(
        MANAGEMENT,
        "Sign in to the page",
        "Signs in with a key that has the scope `read:data`, or with the code of a link that"
        " `headrace sign-in` prints, and sets a cookie for twelve hours. The cookie has the rights"
        " of its key everywhere below `/v1`, for requests of the page itself alone; a key in a"
        " header wins. After ten failed sign-ins in a minute an address has to wait.",
        SessionResponse,
        _SESSION,
        SignInBody,
        {"code": "3XJ0c9"},
        takes_arrays=False,
    ),
    operations.SESSION_SHOW: OperationDoc(
        MANAGEMENT,
        "Tell who is signed in",
        "Returns the session of the cookie: its scopes, the websites that it reaches, and when it"
        " ends. A key in a header is not looked at. 401 where there is no session, or has ended.",
        SessionResponse,
        _SESSION,
    ),
    operations.SESSION_END: OperationDoc(
        MANAGEMENT,
        "Sign out",
        "Ends the session of the cookie and clears the cookie. It succeeds without a session, too.",
    ),
    endpoints.STORAGE.first: OperationDoc(
        QUERIES,
        "Describe what is stored",
        "Returns, for each table of the website, how many rows answers see (bots included), how"
        " many have expired and are not deleted yet, the size on disk of both, the time of the"
        " first and last row, and how long rows are kept. Without `website_id`, for each website"
        " that the key reaches. Counts towards the query rate. An unknown parameter is 400.",
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
}
