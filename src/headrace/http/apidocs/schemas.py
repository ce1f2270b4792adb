"""JSON Schemas of all bodies, made from the structs that decode and encode them."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from headrace.administration.bodies import NewKey, NewWebsite, OrganizationBody, WebsitePatch
from headrace.formats.quarantine_objects import EntryFile
from headrace.http.apidocs.field_docs import FIELD_DESCRIPTIONS
from headrace.http.apidocs.schema_rules import SCHEMA_OVERRIDES, SCHEMA_PREFIX, SCHEMA_RULES, Schema
from headrace.http.responses import IngestionError, QueryError
from headrace.http.routes.administration.responses import (
    AuditResponse,
    DeletedResponse,
    EntryListResponse,
    EntryResponse,
    KeyListResponse,
    KeyResponse,
    NewKeyResponse,
    OrganizationListResponse,
    OrganizationResponse,
    RetriedEntryResponse,
    WebsiteListResponse,
    WebsiteResponse,
)
from headrace.http.routes.formats.query_results import QueryResponse
from headrace.http.routes.formats.sql_results import SqlResponse
from headrace.http.routes.formats.standard_results import StandardResponse
from headrace.http.routes.ingest import BatchResponse, CountResponse, SingleResponse
from headrace.http.routes.operations import HealthResponse, ReadyResponse
from headrace.http.routes.rows.erasures import (
    ErasureDryRunResponse,
    ErasureListResponse,
    ErasureResponse,
)
from headrace.http.routes.rows.storage import StorageResponse
from headrace.http.routes.saved.definitions import (
    SavedDefinitionResponse,
    SavedListResponse,
    SavedTokenResponse,
)
from headrace.http.routes.session import SessionResponse, SignInBody
from headrace.http.tracker.files import PinnedScript
from headrace.model.wire import (
    CustomEvent,
    Engagement,
    ErrorReport,
    Identification,
    PageView,
    QueryRequest,
    WebVital,
)
from headrace.model.wire_analyses import FunnelRequest, RetentionRequest, StandardRequest
from headrace.query.schema.service import EventName, PropertyKey


class SchemaColumn(Struct, frozen=True):
    """One column in the response of /v1/query/schema."""

    name: str
    type: str
    filterable: bool
    aggregatable: bool
    description: str


class SchemaTable(Struct, frozen=True):
    """One table in the response of /v1/query/schema."""

    name: str
    description: str
    columns: tuple[SchemaColumn, ...]


class SchemaResponse(Struct, frozen=True, rename="camel"):
    """The response of /v1/query/schema: everything that a query can use.

    The last two are there where a website is named.
    """

    tables: tuple[SchemaTable, ...]
    aggregates: tuple[str, ...]
    operators: tuple[str, ...]
    limits: dict[str, int]
    event_names: tuple[EventName, ...] | UnsetType = UNSET
    properties: tuple[PropertyKey, ...] | UnsetType = UNSET


REQUEST_BODIES: tuple[type[Struct], ...] = (
    CustomEvent,
    WebVital,
    ErrorReport,
    PageView,
    Engagement,
    Identification,
    QueryRequest,
    FunnelRequest,
    RetentionRequest,
    StandardRequest,
    SignInBody,
    OrganizationBody,
    NewWebsite,
    WebsitePatch,
    NewKey,
)
_REQUIRED_BY_NAME: Mapping[str, tuple[str, ...]] = {
    "RetentionRequest": ("granularity", "periods"),
}
"""Required fields whose types accept null, so that their absence has an error of its own."""

RESPONSE_BODIES: tuple[type[Struct], ...] = (
    CountResponse,
    BatchResponse,
    SingleResponse,
    IngestionError,
    QueryResponse,
    StandardResponse,
    SqlResponse,
    QueryError,
    SavedDefinitionResponse,
    SavedListResponse,
    SavedTokenResponse,
    SchemaResponse,
    ErasureResponse,
    ErasureListResponse,
    ErasureDryRunResponse,
    SessionResponse,
    StorageResponse,
    OrganizationResponse,
    OrganizationListResponse,
    WebsiteResponse,
    WebsiteListResponse,
    KeyResponse,
    KeyListResponse,
    NewKeyResponse,
    DeletedResponse,
    EntryResponse,
    EntryListResponse,
    EntryFile,
    RetriedEntryResponse,
    AuditResponse,
    HealthResponse,
    ReadyResponse,
    PinnedScript,
)


def make_schemas() -> Mapping[str, Schema]:
    """Return the schemas of all bodies and of all types within them, by name."""
    _, components = msgspec.json.schema_components(
        (*REQUEST_BODIES, *RESPONSE_BODIES), ref_template=SCHEMA_PREFIX + "{name}"
    )
    return {name: _complete_schema(name, schema) for name, schema in components.items()}


def schema_ref(schema: type[Struct] | str) -> Schema:
    """Return a reference to the schema of a struct, given by type or name."""
    return {"$ref": SCHEMA_PREFIX + (schema if isinstance(schema, str) else schema.__name__)}


def _complete_schema(name: str, schema: Schema) -> Schema:
    """Add the descriptions of fields and the rules that the struct lacks."""
    completed = {key: value for key, value in schema.items() if key != "title"}
    completed["description"] = " ".join(schema.get("description", "").split("\n\n")[0].split())
    if "properties" in schema:
        completed["properties"] = {
            field: _complete_field(name, field, rules)
            for field, rules in schema["properties"].items()
        }
        completed["required"] = _required(name, schema)
    return completed | SCHEMA_RULES.get(name, {})


def _complete_field(name: str, field: str, rules: Schema) -> Schema:
    if field == "success":
        rules = {"const": name != QueryError.__name__}
    overridden: Schema = _spelled_out(SCHEMA_OVERRIDES.get((name, field), rules))
    kept = {key: value for key, value in overridden.items() if (key, value) != ("default", None)}
    return {"description": FIELD_DESCRIPTIONS[name][field], **kept}


def _spelled_out(rules: Schema) -> Schema:
    """Say of arrays and objects of anything that they are: generators of clients need it."""
    spelled = dict(rules)
    if "anyOf" in rules:
        spelled["anyOf"] = [_spelled_out(option) for option in rules["anyOf"]]
    elif rules == {"type": "array"}:
        spelled["items"] = {}
    elif rules.get("type") == "object" and not rules.keys() & {"properties", "required"}:
        spelled.setdefault("additionalProperties", {})
    elif "items" in rules:
        spelled["items"] = _spelled_out(rules["items"])
    return spelled


def _required(name: str, schema: Mapping[str, Any]) -> list[str]:
    """Return the fields without a default, and those whose rules exclude null."""
    named: list[str] = list(schema.get("required", ()))
    return [*named, *_REQUIRED_BY_NAME.get(name, ())]
