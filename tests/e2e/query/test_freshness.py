"""Queries during ingestion return every event that was acknowledged before the query.

Two workers receive events and queries. Results are cached, shared between concurrent queries, and
invalidated by loads of events of the same website and of another one.
"""

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
import requests

from testing.service import Service, bearer
from tests.e2e.query.queries import event, query, select, selects_by_source

ServiceMaker = Callable[..., Service]

BATCHES, CLIENTS = 40, 4
LIMITS = range(1, 9)
"""Each limit makes a different query of the same totals, so that some always run concurrently."""

TOTALS: tuple[Mapping[str, Any], ...] = (
    query(),
    query(select("event_count", "sum", "n"), table="sessions"),
    query(select("event_count", "sum", "n"), table="profiles", group_by=["anonymous_id"]),
)
"""Queries that all return the same number here: the number of events."""


class Website:
    """Counts the events of a website: sent, acknowledged, and the most that a result contained."""

    def __init__(self, service: Service) -> None:
        self.sent = self.acknowledged = self.seen = 0
        self._lock = threading.Lock()
        self._service = service
        self._id = service.website()
        self._headers = {"Content-Type": "application/json", **bearer(service.master)}

    def send(self, session: requests.Session, size: int) -> None:
        with self._lock:
            self.sent += size
        self._post(session, "/track", [event(sessionId="s", anonymousId="u")] * size)
        with self._lock:
            self.acknowledged += size

    def run_query(
        self, session: requests.Session, sent_query: Mapping[str, Any], limit: int
    ) -> None:
        """Run a query, and check its result against the counts before and after it."""
        with self._lock:
            expected_total = max(self.acknowledged, self.seen)
        days = {"startDate": "2025-03-01", "endDate": "2025-03-31"}
        body = {"query": sent_query, **days, "limit": limit}
        rows = self._post(session, "/v1/query/custom", body)["data"]
        answer = sum(row["n"] for row in rows)
        with self._lock:
            assert expected_total <= answer <= self.sent
            self.seen = max(self.seen, answer)

    def _post(self, session: requests.Session, path: str, body: Any) -> Any:
        url = f"{self._service.url}{path}?website_id={self._id}"
        response = session.post(url, data=json.dumps(body), headers=self._headers, timeout=30)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.mark.slow
def test_repeated_query_never_gets_a_stale_result(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(workers=2).start()
    websites = Website(service), Website(service)
    is_over = threading.Event()

    def send(number: int) -> None:
        with service.session() as session:
            for batch in range(BATCHES):
                websites[(number + batch // 10) % 2].send(session, 1 + batch % 3)

    def run_query(seed: int) -> None:
        random_source = Random(seed)  # noqa: S311 - not a secret
        with service.session() as session:
            while not is_over.is_set():
                website = random_source.choice(websites)
                website.run_query(
                    session, random_source.choice(TOTALS), random_source.choice(LIMITS)
                )

    with ThreadPoolExecutor(CLIENTS + 2) as pool:
        querying = [pool.submit(run_query, number) for number in range(CLIENTS)]
        sending = [pool.submit(send, number) for number in range(2)]
        try:
            for one in sending:
                one.result()
        finally:
            is_over.set()
        for one in querying:
            one.result()
    for website in websites:
        assert website.sent == website.acknowledged > BATCHES
        for sent_query in TOTALS * 2:
            website.run_query(service.http, sent_query, 1)
        assert website.seen == website.sent
    assert selects_by_source(service).keys() >= {"run", "cached"}
