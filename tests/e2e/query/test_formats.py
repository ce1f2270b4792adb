"""Results as CSV and as Arrow, and the schema endpoint."""

import csv
import io
import json
from datetime import datetime
from typing import Any

import pytest
import requests
from arro3.io import read_ipc_stream

from testing.service import Json, Service, bearer
from tests.e2e.query.queries import COUNT, NOON, alike, body, event, query, select, send
from tests.oracle.check import AGGREGATES, OPERATORS
from tests.oracle.columns import TABLES

CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
AWKWARD = ["plain", "a,b", 'say "hi"', "two\nlines", "büro 🦆", " blank "]
VARIED = query(
    COUNT,
    select("value", "avg", "mean"),
    group_by=["namespace", "is_bot", "time", "value", "properties.k"],
)


@pytest.fixture(scope="module")
def varied_rows(service: Service) -> str:
    """A website with rows of every kind of value."""
    website = service.website()
    rows = [event(namespace=text, properties={"value": n / 2}) for n, text in enumerate(AWKWARD)]
    kinds: list[Json] = [1, 1.5, True, "x", None, [1, "y"]]
    properties = [{"k": kind} for kind in kinds]
    send(service, website, *rows, *(event(properties=one) for one in properties))
    return website


def get(service: Service, website: str, accept: str, sent: Any = None) -> requests.Response:
    return service.post(
        f"/v1/query/custom?website_id={website}",
        body(VARIED) if sent is None else sent,
        headers={**bearer(service.master), "Accept": accept},
    )


def content_type(response: requests.Response) -> str:
    return response.headers["Content-Type"].split(";")[0]


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "text/html", "image/png", "text/csv;q=0, */*", ""]
)
def test_other_accept_headers_get_json(service: Service, varied_rows: str, accept: str) -> None:
    response = get(service, varied_rows, accept)
    assert (response.status_code, content_type(response)) == (200, "application/json")
    assert response.json()["success"] is True


def test_csv_is_exact(service: Service, website: str) -> None:
    send(
        service,
        website,
        event("a", path="/1", properties={"value": 2.5, "k": 'x "y", z'}),
        event("b", at="2025-03-10T12:00:00.250Z"),
    )
    sent_query = query(
        COUNT,
        select("value", "avg", "the, mean"),
        group_by=["event_name", "path", "is_bot", "time", "properties.k"],
    )
    order = [{"field": "event_name"}]
    response = get(service, website, CSV, body(sent_query, orderBy=order))
    assert response.text.replace("\r\n", "\n") == (
        'event_name,path,is_bot,time,properties.k,n,"the, mean"\n'
        'a,/1,false,2025-03-10T12:00:00.000Z,"x ""y"", z",1,2.5\n'
        "b,,false,2025-03-10T12:00:00.250Z,,1,\n"
    )


def test_csv_has_the_rows_of_the_json_result(service: Service, varied_rows: str) -> None:
    expected = get(service, varied_rows, "application/json").json()["data"]
    response = get(service, varied_rows, CSV)
    assert (response.status_code, content_type(response)) == (200, CSV)
    lines = list(csv.reader(io.StringIO(response.content.decode(), newline="")))
    assert lines[0] == list(expected[0])
    assert lines[1:] == [[_as_csv(value) for value in row.values()] for row in expected]


def _as_csv(value: Json) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_csv_has_json_text_without_blanks_for_objects_and_arrays(
    service: Service, website: str
) -> None:
    values: list[Json] = [{"é": [1.50, None, "a, b"], "b": {}}, [1e2, True]]
    send(service, website, *(event(properties={"k": value}) for value in values))

    by_value = body(query(COUNT, group_by=["properties.k"]), orderBy=[{"field": "properties.k"}])
    response = get(service, website, CSV, by_value)

    rows = list(csv.reader(io.StringIO(response.content.decode(), newline="")))
    assert rows == [
        ["properties.k", "n"],
        ["[100,true]", "1"],
        ['{"é":[1.5,null,"a, b"],"b":{}}', "1"],
    ]


def test_csv_of_no_rows_is_its_header(service: Service, website: str) -> None:
    response = get(service, website, CSV)
    assert response.text.rstrip("\r\n") == "namespace,is_bot,time,value,properties.k,n,mean"
    assert response.headers["X-Row-Count"] == "0"
    assert response.headers["X-Truncated"] == "false"


@pytest.mark.parametrize("accept", [CSV, ARROW])
@pytest.mark.parametrize(("limit", "truncated"), [(12, "false"), (11, "true")])
def test_row_count_and_truncated_are_headers(
    service: Service, varied_rows: str, accept: str, limit: int, truncated: str
) -> None:
    response = get(service, varied_rows, accept, body(VARIED, limit=limit))
    assert content_type(response) == accept
    assert response.headers["X-Row-Count"] == str(limit)
    assert response.headers["X-Truncated"] == truncated


def arrow_rows(response: requests.Response) -> list[dict[str, Any]]:
    table: Any = read_ipc_stream(io.BytesIO(response.content)).read_all()  # incomplete stubs
    names: list[str] = table.schema.names
    columns: list[list[Any]] = [table.column(name).to_pylist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def test_arrow_has_the_rows_of_the_json_result(service: Service, varied_rows: str) -> None:
    sent_query = query(
        COUNT, select("value", "avg", "mean"), group_by=["namespace", "is_bot", "value"]
    )
    expected = get(service, varied_rows, "application/json", body(sent_query)).json()["data"]
    response = get(service, varied_rows, ARROW, body(sent_query))
    assert (response.status_code, content_type(response)) == (200, ARROW)
    assert alike(arrow_rows(response), expected)


def test_arrow_keeps_timestamps_and_the_json_of_properties(service: Service, website: str) -> None:
    kinds: list[Json] = [5, "5", True, [1, "y"], None]
    send(service, website, *(event(properties={"k": kind}) for kind in kinds))
    sent_query = query(group_by=["properties.k", "time"])
    rows = arrow_rows(get(service, website, ARROW, body(sent_query)))
    assert {row["time"] for row in rows} == {datetime.fromisoformat(NOON)}
    metadata = [row["properties.k"] for row in rows]
    assert metadata[:3] + metadata[4:] == ["5", "true", '"5"', None]
    assert json.loads(json.loads(metadata[3])) == [1, "y"]


def test_arrow_replaces_nul_in_names(service: Service, varied_rows: str) -> None:
    """Arrow libraries pass names as C strings, which end at NUL."""
    sent_query = query(select("*", "count", "a\0b"))
    assert get(service, varied_rows, "application/json", body(sent_query)).json()["data"] == [
        {"a\0b": 12}
    ]
    response = get(service, varied_rows, ARROW, body(sent_query))
    assert (response.status_code, content_type(response)) == (200, ARROW)
    assert arrow_rows(response) == [{"a\N{REPLACEMENT CHARACTER}b": 12}]


def test_arrow_of_no_rows_still_has_its_columns(service: Service, website: str) -> None:
    response = get(service, website, ARROW)
    table = read_ipc_stream(io.BytesIO(response.content)).read_all()
    names = ["namespace", "is_bot", "time", "value", "properties.k", "n", "mean"]
    assert (list(table.schema.names), table.num_rows) == (names, 0)


@pytest.mark.parametrize("accept", [CSV, ARROW])
def test_rejected_query_is_json_for_any_accept_header(
    service: Service, varied_rows: str, accept: str
) -> None:
    response = get(service, varied_rows, accept, body(limit=0))
    assert (response.status_code, content_type(response)) == (400, "application/json")
    assert response.json()["code"] == "INVALID_LIMIT"


# The schema endpoint.


def schema(service: Service) -> dict[str, Json]:
    response = service.get("/v1/query/schema")
    assert (response.status_code, content_type(response)) == (200, "application/json")
    full_rows: dict[str, Json] = response.json()
    return full_rows


def test_schema_needs_no_credentials_and_has_four_parts(service: Service) -> None:
    assert list(schema(service)) == ["tables", "aggregates", "operators", "limits"]


def test_schema_lists_every_column_with_its_capabilities(service: Service) -> None:
    metadata = {
        table["name"]: {
            column["name"]: (column["filterable"], column["aggregatable"])
            for column in table["columns"]
            if not column["name"].startswith("properties.")
        }
        for table in schema(service)["tables"]
    }
    assert metadata == {
        table: {name: (column.filterable, column.aggregatable) for name, column in columns.items()}
        for table, columns in TABLES.items()
    }


def test_schema_lists_the_type_of_every_column(service: Service) -> None:
    metadata = {
        table["name"]: {
            column["name"]: column["type"]
            for column in table["columns"]
            if not column["name"].startswith("properties.")
        }
        for table in schema(service)["tables"]
    }
    assert metadata == {
        table: {name: column.kind for name, column in columns.items()}
        for table, columns in TABLES.items()
    }


def test_schema_describes_every_table_and_column_in_words(service: Service) -> None:
    for table in schema(service)["tables"]:
        assert table.keys() == {"name", "description", "columns"}
        assert table["description"]
        for column in table["columns"]:
            assert column.keys() == {"name", "type", "filterable", "aggregatable", "description"}
            assert column["description"], column["name"]


def test_schema_states_that_events_have_properties(service: Service) -> None:
    columns = {
        (table["name"], column["filterable"], column["aggregatable"])
        for table in schema(service)["tables"]
        for column in table["columns"]
        if column["name"].startswith("properties.")
    }
    assert columns == {("events", True, True)}


def test_schema_lists_aggregates_operators_and_limits(service: Service) -> None:
    full_rows = schema(service)
    assert [name_of(one) for one in full_rows["aggregates"]] == list(AGGREGATES)
    assert {name_of(one) for one in full_rows["operators"]} == set(OPERATORS)
    assert {10, 20, 5, 1000, 10_000, 1_000_000, 64} <= set(full_rows["limits"].values())


def name_of(listed: Json) -> Json:
    return listed if isinstance(listed, str) else listed["name"]
