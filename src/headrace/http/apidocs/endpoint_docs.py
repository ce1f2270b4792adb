"""The descriptions of all endpoints."""

from collections.abc import Mapping

from headrace.http.apidocs.descriptions import (
    administration,
    ingestion,
    management,
    queries,
    service,
)
from headrace.http.apidocs.descriptions.description import EndpointDoc
from headrace.http.endpoint_spec import EndpointSpec

ENDPOINT_DOCS: Mapping[EndpointSpec, EndpointDoc] = {
    **ingestion.DESCRIPTIONS,
    **queries.DESCRIPTIONS,
    **management.DESCRIPTIONS,
    **administration.DESCRIPTIONS,
    **service.DESCRIPTIONS,
}
"""Every endpoint, in the order of the reference."""
