"""The document of the schema endpoint, made from the catalog: what a query may contain."""

from typing import Any

from headrace.model.catalog import (
    QUERY_LIMITS,
    TABLES,
    Aggregate,
    Column,
    Kind,
    Operator,
    Table,
)
from headrace.query.validate.columns import PROPERTY_COLUMN


def query_schema() -> dict[str, Any]:
    """Return tables with their columns, the names of aggregates and operators, and all limits."""
    return {
        "tables": [_describe_table(table) for table in TABLES],
        "aggregates": [aggregate.value for aggregate in Aggregate],
        "operators": [operator.value for operator in Operator],
        "limits": dict(QUERY_LIMITS),
    }


def _describe_table(table: Table) -> dict[str, Any]:
    columns = [_describe_column(column.name, column) for column in table.columns]
    example = table.column(PROPERTY_COLUMN)
    if example is not None:
        columns.append(_describe_column(PROPERTY_COLUMN, example))
    return {"name": table.name, "description": table.description, "columns": columns}


def _describe_column(name: str, column: Column) -> dict[str, Any]:
    kind = Kind.TEXT if column.kind is Kind.IDENTIFIER else column.kind
    return {
        "name": name,
        "type": kind.value,
        "filterable": column.filterable,
        "aggregatable": column.aggregatable,
        "description": column.description,
    }
