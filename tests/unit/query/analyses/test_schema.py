"""The schema document, which lists the valid parts of a query."""

from headrace.model.catalog import QUERY_LIMITS, TABLES
from headrace.query.schema.document import query_schema


def test_schema_has_its_four_parts() -> None:
    schema = query_schema()
    assert list(schema) == ["tables", "aggregates", "operators", "limits"]
    assert [table["name"] for table in schema["tables"]] == [table.name for table in TABLES]
    assert schema["aggregates"] == [
        *("count", "uniq", "sum", "avg", "max", "min", "p50", "p75", "p90", "p95", "p99"),
        *("earliest", "latest", "good_share", "needs_improvement_share", "poor_share"),
    ]
    assert schema["operators"] == [
        *("eq", "ne", "gt", "lt", "gte", "lte", "contains", "not_contains", "starts_with"),
        *("not_starts_with", "ends_with", "not_ends_with", "matches", "not_matches"),
        *("in", "not_in", "is_set", "is_not_set"),
    ]
    assert schema["limits"] == dict(QUERY_LIMITS)


def test_column_is_listed_with_its_type_and_capabilities() -> None:
    (performance,) = [t for t in query_schema()["tables"] if t["name"] == "performance"]
    columns = {column["name"]: column for column in performance["columns"]}
    assert columns["id"] == {
        "name": "id",
        "type": "text",
        "filterable": False,
        "aggregatable": False,
        "description": "unique id of the row",
    }
    assert columns["metric_value"] == {
        "name": "metric_value",
        "type": "number",
        "filterable": True,
        "aggregatable": True,
        "description": "value of the metric",
    }


NUMBERS = {
    "events": {
        *("time_on_page", "scroll_depth", "interaction_count", "page_count", "load_time"),
        *("dom_ready_time", "dom_interactive", "ttfb", "render_time", "value"),
    },
    "sessions": {"duration", "page_views", "event_count"},
    "profiles": {"session_count", "event_count", "page_views"},
    "errors": {"lineno", "colno"},
    "performance": {"metric_value"},
}
DATETIMES = {
    "events": {"time", "received_at"},
    "sessions": {"start_time", "end_time"},
    "profiles": {"first_seen", "last_seen"},
    "errors": {"time"},
    "performance": {"time"},
}
BOOLEANS = {
    "events": {"is_bot"},
    "sessions": {"is_bounce"},
    "errors": {"is_bot"},
    "performance": {"is_bot"},
}


def test_types_are_those_of_the_values_and_all_other_columns_are_texts() -> None:
    typed: dict[str, dict[str, set[str]]] = {}
    for table in query_schema()["tables"]:
        for column in table["columns"]:
            names = typed.setdefault(column["type"], {}).setdefault(table["name"], set())
            names.add(column["name"])
    assert {kind: columns for kind, columns in typed.items() if kind != "text"} == {
        "number": NUMBERS,
        "datetime": DATETIMES,
        "boolean": BOOLEANS,
        "json": {"events": {"properties.KEY"}},
    }


def test_only_events_have_properties() -> None:
    with_properties = [
        (table["name"], column)
        for table in query_schema()["tables"]
        for column in table["columns"]
        if column["type"] == "json"
    ]
    assert with_properties == [
        (
            "events",
            {
                "name": "properties.KEY",
                "type": "json",
                "filterable": True,
                "aggregatable": True,
                "description": "one key of the event's properties",
            },
        )
    ]
