"""Rows that are exported and imported into an empty Headrace give the same results to queries."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from headrace.base.settings import load_settings
from headrace.model.imports import ImportFormat, ImportRequest
from headrace.model.log_records import EventKind
from headrace.model.storage import TABLE_OF_KIND
from headrace.model.tenancy import WebsiteId
from headrace.wiring.commands.import_sources import open_files
from headrace.wiring.commands.imports import import_files
from testing.service import PATIENT_QUERIES, Service, bearer
from tests.property.generators.query_cases import Body, arbitrary_bodies
from tests.property.generators.query_data import Item, data_sets
from tests.property.queries.test_query_oracle import are_alike, store

QUERIES = int(os.environ.get("HEADRACE_TEST_ROUND_TRIP_QUERIES", "240"))
"""The number of compared queries, at about 20 ms each and the time of four data sets."""

QUERIES_A_DATA_SET = 60
FORMATS = {
    EventKind.EVENTS: ImportFormat.NDJSON,
    EventKind.VITALS: ImportFormat.PARQUET,
    EventKind.ERRORS: ImportFormat.NDJSON,
}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Service]]:
    """Two services: one that gets events, and one that gets nothing but imports."""
    pair = [
        Service(tmp_path_factory.mktemp("round trip") / "data", settings=PATIENT_QUERIES)
        for _ in range(2)
    ]
    try:
        source, target = (one.start() for one in pair)
        yield source, target
    finally:
        for one in pair:
            one.kill()


def copy_table(
    source: Service, website: str, target: Service, copy: str, kind: EventKind
) -> tuple[int, int]:
    """Export a table over HTTP and import it; return the rows that are stored and repeated."""
    parameters = {
        "website_id": website,
        "table": TABLE_OF_KIND[kind].name,
        "format": FORMATS[kind].value,
    }
    headers = bearer(source.key("manage:data"))
    exported = source.get("/v1/export", params=parameters, headers=headers)
    assert exported.status_code == 200, exported.text
    request = ImportRequest(format=FORMATS[kind], website_id=WebsiteId(copy), event_kind=kind)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        file.write_bytes(exported.content)
        with open_files(request.format, [file]) as sources:
            totals = import_files(
                load_settings({"data_dir": str(target.data)}),
                request,
                sources,
                by="cli tests",
                on_refused=lambda refused: pytest.fail(refused.reason),
                progress=lambda _done, _total: None,
            )
    return totals.stored, totals.repeated


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of the data, at a failure
@settings(
    max_examples=max(1, -(-QUERIES // QUERIES_A_DATA_SET)),
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.nested_given),
)
@given(data=data_sets)
def test_results_of_imported_rows_match_the_oracle(
    services: tuple[Service, Service], data: dict[str, list[Item]]
) -> None:
    source, target = services
    website, copy = source.website(), target.website()
    stored = store(source, website, data)
    for kind in EventKind:
        rows = len(data[TABLE_OF_KIND[kind].name])
        assert copy_table(source, website, target, copy, kind) == (rows, 0)
        assert copy_table(source, website, target, copy, kind) == (0, rows)

    @settings(
        max_examples=QUERIES_A_DATA_SET,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow,),
    )
    @given(body=arbitrary_bodies)
    def compare(body: Body) -> None:
        are_alike(target, copy, stored, body)

    compare()
