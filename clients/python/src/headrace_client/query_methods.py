"""The queries of a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace_client.queries import QueryClient, Result
from headrace_client.query_bodies import (
    FunnelOptions,
    QueryOptions,
    QueryRequest,
    RetentionOptions,
    StandardOptions,
    make_request,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class QueryMethods:
    """One method for each kind of query; `website_id` is that of queries that name none."""

    def __init__(self, query_client: QueryClient, website_id: str | None) -> None:
        self.query_client = query_client
        self._website_id = website_id

    def query(
        self,
        query: Mapping[str, object],
        *,
        website_id: str | None = None,
        **options: Unpack[QueryOptions],
    ) -> Result:
        """Run a custom query (`table`, `selects`, `filters`, `groupBy`) and return its rows.

        Raises `QueryRefused` for a query that fails again, else `QueryUnavailable`.
        """
        request = self._query("custom", {"query": query}, website_id, options)
        return self.query_client.run(request)

    def funnel(
        self,
        steps: Sequence[Mapping[str, object]],
        *,
        website_id: str | None = None,
        **options: Unpack[FunnelOptions],
    ) -> Result:
        """Count who took each step (`name`, `filters`) within the window of the first."""
        request = self._query("funnel", {"steps": steps}, website_id, options)
        return self.query_client.run(request)

    def retention(
        self,
        first: Mapping[str, object],
        returning: Mapping[str, object],
        *,
        granularity: str,
        periods: int,
        website_id: str | None = None,
        **options: Unpack[RetentionOptions],
    ) -> Result:
        """Count who of each cohort of a first event (`filters`) came back in later periods."""
        body = {"first": first, "return": returning, "granularity": granularity}
        request = self._query("retention", {**body, "periods": periods}, website_id, options)
        return self.query_client.run(request)

    def standard(
        self,
        types: Sequence[str],
        *,
        website_id: str | None = None,
        **options: Unpack[StandardOptions],
    ) -> Mapping[str, Any]:
        """Run standard queries such as `summary` and `pages`, and return their results by type."""
        request = self._query("standard", {"types": types}, website_id, options)
        return self.query_client.run_all(request)

    def _query(
        self,
        kind: str,
        content: Mapping[str, object],
        website_id: str | None,
        options: Mapping[str, object],
    ) -> QueryRequest:
        return make_request(kind, content, website_id or self._website_id, options)
