"""Queries the stored events; retries until the service responds."""

import http.client
import time
from collections.abc import Iterator
from typing import NamedTuple

from chaos.service import Json, RecoveryTimeout, Service, send_request


class Account(NamedTuple):
    """The website that events are sent to, and the key for its queries."""

    website: str
    key: str


class QueryClient:
    """Reads back what the service has stored."""

    def __init__(self, service: Service, account: Account) -> None:
        self._service = service
        self._account = account

    def stored(self, table: str, path: str) -> dict[str, int]:
        """Return the number of rows of each event below a path."""
        query = _query(
            table, ["anonymous_id"], [{"aggregate": "count", "field": "*", "alias": "n"}]
        )
        query["filters"].append({"field": "path", "operator": "eq", "value": path})
        return {row["anonymous_id"]: row["n"] for row in self._pages(query, "anonymous_id")}

    def counts(self, table: str) -> dict[str, tuple[int, int]]:
        """Return for each path the number of rows and the number of distinct events."""
        selects = [
            {"aggregate": "count", "field": "*", "alias": "n"},
            {"aggregate": "uniq", "field": "anonymous_id", "alias": "events"},
        ]
        rows = self._pages(_query(table, ["path"], selects), "path")
        return {row["path"]: (row["n"], row["events"]) for row in rows}

    def _pages(self, query: Json, order: str, size: int = 10_000) -> Iterator[Json]:
        offset = 0
        while page := self._fetch_page(query, order, size, offset):
            yield from page
            if len(page) < size:
                return
            offset += size

    def _fetch_page(self, query: Json, order: str, size: int, offset: int) -> list[Json]:
        body = {
            "query": query,
            "startDate": "2020-01-01",
            "endDate": "2029-12-31",
            "limit": size,
            "offset": offset,
            "orderBy": [{"field": order}],
        }
        path = f"/v1/query/custom?website_id={self._account.website}"
        headers = {"Authorization": f"Bearer {self._account.key}"}
        timeout_s = self._service.recovery_timeout_s
        deadline = time.monotonic() + timeout_s
        problem = ""
        while time.monotonic() < deadline:
            try:
                response = send_request(
                    self._service.port, "POST", path, body=body, headers=headers
                )
            except (OSError, http.client.HTTPException) as error:
                problem = repr(error)
            else:
                if response.status == 200:
                    rows: list[Json] = response.body["data"]
                    return rows
                problem = repr(response)
            time.sleep(0.05)
        raise RecoveryTimeout(f"a query had no answer for {timeout_s:.0f} s: {problem}")


def _query(table: str, group_by: list[str], selects: list[Json]) -> dict[str, Json]:
    bots_too = {"field": "is_bot", "operator": "in", "value": [True, False]}
    return {"table": table, "selects": selects, "groupBy": group_by, "filters": [bots_too]}
