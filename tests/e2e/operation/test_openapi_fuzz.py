"""Generated requests, valid and invalid, match the OpenAPI document."""

# The library leaves the type arguments of its own generics open:
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from testing.service import Service, bearer

pytestmark = pytest.mark.slow

EVERY_HEALTH_CHECK = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 50
POSTED = ["/track", "/vitals", "/errors", "/batch", "/", "/v1/query/custom", "/v1/query/standard"]
GOT = ["/health", "/ready", "/metrics", "/openapi.json", "/docs", "/v1/query/schema"]
IDENTIFIERS = {"/v1/query/custom": "website_id", "/v1/query/standard": "website_id"}


@pytest.fixture(scope="module")
def schema(service: Service) -> BaseSchema:
    return schemathesis.openapi.from_url(f"{service.url}/openapi.json")


@pytest.fixture(scope="module")
def target(service: Service) -> str:
    """A website that receives the generated items."""
    return service.website()


def check_operation(operation: Any, examples: int = EXAMPLES, **fixed: Any) -> None:
    """Send generated requests, valid and invalid, and check every response.

    No request of an operation is invalid where all that it takes is `fixed`, or an id in the path,
    which is any text.
    """
    drawn = [one.name for one in operation.query if one.name not in fixed.get("query", {})]
    drawn += [] if "headers" in fixed else [one.name for one in operation.headers]
    drawn += [one.name for one in operation.path_parameters if one.name != "id"]
    has_input = operation.body or drawn
    for mode in GenerationMode if has_input else [GenerationMode.POSITIVE]:

        @settings(
            max_examples=examples,
            database=None,
            derandomize=True,
            suppress_health_check=EVERY_HEALTH_CHECK,
        )
        @given(case=operation.as_strategy(generation_mode=mode, **fixed))
        def exchange(case: Any) -> None:
            case.validate_response(case.call(timeout=30), checks=CHECKS)

        run: Callable[[], None] = exchange
        run()


@pytest.mark.parametrize("path", POSTED)
def test_unauthenticated_responses_match_the_schema(schema: BaseSchema, path: str) -> None:
    check_operation(schema[path]["POST"])


@pytest.mark.parametrize("path", POSTED)
def test_authenticated_responses_match_the_schema(
    service: Service, schema: BaseSchema, target: str, path: str
) -> None:
    identifier = {IDENTIFIERS.get(path, "client_id"): target}

    check_operation(schema[path]["POST"], query=identifier, headers=bearer(service.master))

    service.wait_ready()


@pytest.mark.parametrize("path", GOT)
def test_get_responses_match_the_schema(schema: BaseSchema, path: str) -> None:
    check_operation(schema[path]["GET"], examples=3)


@pytest.mark.parametrize(
    "path", ["/v1/admin/organizations", "/v1/admin/websites", "/v1/admin/keys"]
)
def test_responses_of_administration_match_the_schema(
    service: Service, schema: BaseSchema, path: str
) -> None:
    organization = service.organization("fuzzed")
    administrator = service.key("manage:config", organization=organization)

    check_operation(schema[path]["POST"], examples=20, headers=bearer(administrator))

    service.wait_ready()


@pytest.mark.parametrize(
    ("path", "method"),
    [
        *[("/v1/admin/organizations", "GET"), ("/v1/admin/websites", "GET")],
        *[("/v1/admin/keys", "GET"), ("/v1/admin/organizations/{id}", "GET")],
        *[("/v1/admin/organizations/{id}", "DELETE"), ("/v1/admin/websites/{id}", "GET")],
        *[("/v1/admin/websites/{id}", "DELETE"), ("/v1/admin/keys/{id}", "GET")],
        *[("/v1/admin/keys/{id}", "DELETE"), ("/v1/session", "GET"), ("/v1/session", "DELETE")],
    ],
)
def test_responses_of_administration_without_a_body_match_the_schema(
    service: Service, schema: BaseSchema, path: str, method: str
) -> None:
    administrator = service.key("manage:config")

    check_operation(schema[path][method], examples=10, headers=bearer(administrator))

    assert service.is_ready()


@pytest.mark.parametrize(
    ("path", "method"),
    [
        *[("/v1/saved/{name}", "PUT"), ("/v1/saved/{name}", "GET"), ("/v1/saved", "GET")],
        *[("/v1/saved/{name}", "DELETE"), ("/v1/saved/{name}.{format}", "GET")],
        ("/v1/erasures", "GET"),
    ],
)
def test_responses_of_saved_queries_match_the_schema(
    service: Service, schema: BaseSchema, target: str, path: str, method: str
) -> None:
    key = service.key("manage:data", "read:data")
    website = {"website_id": target}

    check_operation(schema[path][method], examples=20, query=website, headers=bearer(key))

    service.wait_ready()
