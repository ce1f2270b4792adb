"""The service and the oracle return the same rows in the same order, or the same error code."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings

from testing.service import PATIENT_QUERIES, Service, bearer, running_service
from tests.e2e.query.queries import alike, send
from tests.oracle import QueryRejected, Stored, evaluate_query
from tests.oracle.rows import Row
from tests.oracle.stored import error_row, event_row, vital_row
from tests.property.generators.query_cases import Body, arbitrary_bodies
from tests.property.generators.query_data import GOOGLEBOT, Item, data_sets
from tests.property.generators.shrink import minimize

PAIRS = int(os.environ.get("HEADRACE_TEST_ORACLE_PAIRS", "400"))
"""The number of compared queries; `make oracle` compares many more, without HTTP."""

QUERIES_A_DATA_SET = 40
ENDPOINTS = {"events": "/track", "performance": "/vitals", "errors": "/errors"}
ROWS = {"events": event_row, "performance": vital_row, "errors": error_row}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of its own for these data sets."""
    data = tmp_path_factory.mktemp("oracle") / "data"
    with running_service(data, settings=PATIENT_QUERIES) as own:
        yield own


def store(service: Service, website: str, data: dict[str, list[Item]]) -> Stored:
    """Send a data set, visitors in two requests and then bots; return the stored rows."""
    stored: dict[str, list[Row]] = {}
    for table, items in data.items():
        visitors = [item for item in items if not _is_bot(item)]
        bots = [item for item in items if _is_bot(item)]
        half = len(visitors) // 2
        for part in (visitors[:half], visitors[half:]):
            if part:
                send(service, website, *map(_sent, part), path=ENDPOINTS[table])
        if bots:
            _send_as_bot(service, website, [_sent(item) for item in bots], ENDPOINTS[table])
        stored[table] = [
            ROWS[table](item, arrival=arrival, visitor=item["visitor"][1])
            for arrival, item in enumerate([*visitors, *bots])
        ]
    return Stored(**stored)


def _is_bot(item: Item) -> bool:
    return "is_bot" in item["visitor"][1]


def _send_as_bot(service: Service, website: str, sent: list[Item], endpoint: str) -> None:
    response = service.post(
        f"{endpoint}?website_id={website}", sent, headers={"User-Agent": GOOGLEBOT}
    )
    assert (response.status_code, response.json().get("count")) == (200, len(sent)), response.text


def _sent(item: Item) -> Item:
    output: Item = item["visitor"][0]
    return {key: value for key, value in item.items() if key != "visitor"} | output


def expected_of(body: Body, stored: Stored) -> tuple[int, Any]:
    try:
        expected = evaluate_query(body, stored)
    except QueryRejected as refusal:
        return 400, refusal.code
    days = None if expected.compare is None else [str(day) for day in expected.compare]
    meta = {
        "rowCount": len(expected.rows),
        "limit": expected.limit,
        "truncated": expected.truncated,
        **({"compare": dict(zip(("startDate", "endDate"), days, strict=True))} if days else {}),
    }
    totals = {} if expected.totals is None else {"totals": expected.totals}
    others = {} if expected.others is None else {"others": expected.others}
    return 200, {"data": expected.rows, "meta": meta, **totals, **others}


def got_of(service: Service, website: str, body: Body) -> tuple[int, Any]:
    path = f"/v1/query/custom?website_id={website}"
    response = service.post(path, body, headers=bearer(service.master))
    full = response.json()
    if response.status_code != 200:
        return response.status_code, full.get("code")
    for name in ("executionTime", "rowsRead", "bytesRead", "cached", "watermark"):
        del full["meta"][name]
    return 200, {name: full[name] for name in full if name not in ("success", "requestId")}


def are_alike(service: Service, website: str, stored: Stored, body: Body) -> None:
    def is_wrong(body: Body) -> bool:
        return not alike(list(got_of(service, website, body)), list(expected_of(body, stored)))

    if is_wrong(body):
        shown = minimize(body, is_wrong)
        note(json.dumps(shown, ensure_ascii=False))
        note(f"got      {got_of(service, website, shown)}")
        note(f"expected {expected_of(shown, stored)}")
        raise AssertionError("service and oracle disagree")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of the data, at a failure
@settings(
    max_examples=max(1, PAIRS // QUERIES_A_DATA_SET),
    phases=(Phase.generate,),  # a smaller seed does not give a smaller query: `minimize` does
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.nested_given),
)
@given(data=data_sets)
def test_service_results_match_the_oracle(service: Service, data: dict[str, list[Item]]) -> None:
    website = service.website()
    stored = store(service, website, data)

    @settings(
        max_examples=QUERIES_A_DATA_SET,
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow,),
    )
    @given(body=arbitrary_bodies)
    def each_query(body: Body) -> None:
        are_alike(service, website, stored, body)

    each_query()
