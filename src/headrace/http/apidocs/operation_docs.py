"""The descriptions of all operations."""

from collections.abc import Mapping

from headrace.http.apidocs.descriptions import (
    administration,
    ingestion,
    management,
    queries,
    service,
)
from headrace.http.apidocs.descriptions.description import OperationDoc
from headrace.http.endpoint_spec import Operation

OPERATION_DOCS: Mapping[Operation, OperationDoc] = {
    **ingestion.DESCRIPTIONS,
    **queries.DESCRIPTIONS,
    **management.DESCRIPTIONS,
    **administration.DESCRIPTIONS,
    **service.DESCRIPTIONS,
}
"""Every operation, in the order of the reference."""
