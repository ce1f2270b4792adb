"""Schema rules of bodies that their Python types lack: choices, lengths, limits, examples."""

from collections.abc import Mapping
from typing import Any

from headrace.ingest.receive.decoding.timestamps import EARLIEST_MS
from headrace.model.catalog import (
    HAVING_OPERATORS,
    PRESENCE_OPERATORS,
    QUERY_LIMITS,
    STORED_TABLES,
    Aggregate,
    Operator,
    table_names,
)
from headrace.model.data_retention import MAX_RETAIN_DAYS
from headrace.model.plan import Granularity
from headrace.model.tenancy import Scope
from headrace.query.standard.definitions import ONE_OBJECT, STANDARD_TYPES
from headrace.query.validate.compare import PERIODS
from headrace.query.validate.identity import IDENTITIES

Schema = dict[str, Any]

SCHEMA_PREFIX = "#/components/schemas/"

_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]%s)?"
_ISO_8601 = (
    "^[2-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([Tt ]"
    + _CLOCK % "([.,][0-9]+)?"
    + "([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])?)?$"
)
_RFC_2822 = (
    "^((Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?(0?[1-9]|[12][0-9]|3[01])"
    " (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [2-9][0-9]{3} "
    + _CLOCK % ""
    + " (UT|UTC|GMT|[ECMP][SD]T|[+-]([01][0-9]|2[0-3])[0-5][0-9])$"
)
_TIMESTAMP: list[Schema] = [
    {"type": "number", "minimum": EARLIEST_MS},
    {"type": "string", "pattern": _ISO_8601},
    {"type": "string", "pattern": _RFC_2822},
]
_NULL: Schema = {"type": "null"}


def _optional(**schema: object) -> Schema:
    return {"anyOf": [schema, _NULL]}


def _list_of(name: str, limit: str) -> Schema:
    items = {"$ref": f"{SCHEMA_PREFIX}{name}"}
    return {"type": "array", "items": items, "maxItems": QUERY_LIMITS[limit]}


_PRESENCE_OPERATORS = sorted(known.value for known in PRESENCE_OPERATORS)
_VALUE_OPERATORS = [known.value for known in Operator if known not in PRESENCE_OPERATORS]
_IDENTITY_NAMES = [column.name for column in IDENTITIES]
_LAST_DAYS = _optional(type="integer", minimum=1, maximum=QUERY_LIMITS["maxLastDays"])
_FILTER_ITEMS = {**_list_of("Filter", "maxFilters"), "minItems": 1}

_HAVING: Schema = {
    "type": "object",
    "properties": {
        "field": {"type": "string", "description": "output name of a select"},
        "operator": {"enum": [operator.value for operator in HAVING_OPERATORS]},
        "value": {"type": "number"},
    },
    "required": ["field", "operator", "value"],
    "additionalProperties": False,
}

_COMPARE: Schema = {
    "anyOf": [
        {"enum": list(PERIODS)},
        {
            "type": "object",
            "properties": {
                "startDate": {"type": "string", "format": "date"},
                "endDate": {"type": "string", "format": "date"},
            },
            "required": ["startDate", "endDate"],
            "additionalProperties": False,
        },
        {"type": "null"},
    ],
}

SCHEMA_OVERRIDES: Mapping[tuple[str, str], Schema] = {
    ("CustomEvent", "timestamp"): {"anyOf": [*_TIMESTAMP, _NULL]},
    ("PageView", "timestamp"): {"anyOf": [*_TIMESTAMP, _NULL]},
    ("Engagement", "timestamp"): {"anyOf": [*_TIMESTAMP, _NULL]},
    ("Identification", "timestamp"): {"anyOf": [*_TIMESTAMP, _NULL]},
    ("WebVital", "timestamp"): {"anyOf": _TIMESTAMP},
    ("ErrorReport", "timestamp"): {"anyOf": _TIMESTAMP},
    ("QueryRequest", "startDate"): {"type": "string", "format": "date"},
    ("QueryRequest", "endDate"): {"type": "string", "format": "date"},
    ("QueryRequest", "timezone"): {**_optional(type="string", minLength=1), "default": "UTC"},
    ("QueryRequest", "granularity"): _optional(enum=[size.value for size in Granularity]),
    ("QueryRequest", "limit"): {
        **_optional(type="integer", minimum=1),
        "default": QUERY_LIMITS["defaultLimit"],
    },
    ("QueryRequest", "offset"): {
        **_optional(type="integer", minimum=0, maximum=QUERY_LIMITS["maxOffset"]),
        "default": 0,
    },
    ("QueryRequest", "fill"): {**_optional(type="boolean"), "default": False},
    ("QueryRequest", "compare"): _COMPARE,
    ("QueryRequest", "totals"): {**_optional(type="boolean"), "default": False},
    ("QueryRequest", "top"): _optional(type="integer", minimum=1, maximum=QUERY_LIMITS["maxTop"]),
    ("QueryRequest", "others"): {**_optional(type="boolean"), "default": False},
    ("QueryRequest", "orderBy"): _optional(**_list_of("OrderBy", "maxOrderBy")),
    ("FunnelRequest", "steps"): {
        "type": "array",
        "items": {"$ref": f"{SCHEMA_PREFIX}FunnelStep"},
        "minItems": QUERY_LIMITS["minFunnelSteps"],
        "maxItems": QUERY_LIMITS["maxFunnelSteps"],
    },
    ("FunnelRequest", "window"): {
        **_optional(type="integer", minimum=1, maximum=QUERY_LIMITS["maxFunnelWindow"]),
        "default": QUERY_LIMITS["defaultFunnelWindow"],
    },
    ("FunnelRequest", "by"): {**_optional(enum=_IDENTITY_NAMES), "default": _IDENTITY_NAMES[0]},
    ("FunnelRequest", "startDate"): {"type": "string", "format": "date"},
    ("FunnelRequest", "endDate"): {"type": "string", "format": "date"},
    ("FunnelRequest", "timezone"): {**_optional(type="string", minLength=1), "default": "UTC"},
    ("RetentionRequest", "granularity"): {"enum": ["daily", "weekly", "monthly"]},
    ("RetentionRequest", "periods"): {
        "type": "integer",
        "minimum": 1,
        "maximum": QUERY_LIMITS["maxPeriods"],
    },
    ("RetentionRequest", "by"): {**_optional(enum=_IDENTITY_NAMES), "default": _IDENTITY_NAMES[0]},
    ("RetentionRequest", "startDate"): {"type": "string", "format": "date"},
    ("RetentionRequest", "endDate"): {"type": "string", "format": "date"},
    ("RetentionRequest", "timezone"): {**_optional(type="string", minLength=1), "default": "UTC"},
    ("StandardRequest", "types"): {
        "type": "array",
        "items": {"enum": list(STANDARD_TYPES)},
        "minItems": 1,
        "maxItems": QUERY_LIMITS["maxTypes"],
        "uniqueItems": True,
    },
    ("StandardRequest", "filters"): _optional(**_list_of("Filter", "maxFilters")),
    ("StandardRequest", "startDate"): {"type": "string", "format": "date"},
    ("StandardRequest", "endDate"): {"type": "string", "format": "date"},
    ("StandardRequest", "timezone"): {**_optional(type="string", minLength=1), "default": "UTC"},
    ("StandardRequest", "granularity"): {
        **_optional(enum=[size.value for size in Granularity]),
        "default": Granularity.DAILY.value,
    },
    ("StandardRequest", "limit"): {
        **_optional(type="integer", minimum=1),
        "default": QUERY_LIMITS["defaultTypeLimit"],
    },
    ("StandardRequest", "lastDays"): _LAST_DAYS,
    ("StandardRequest", "compare"): _COMPARE,
    ("StandardResponse", "data"): {
        "type": "object",
        "properties": {
            name: {"type": "object"}
            if one.form in ONE_OBJECT
            else {"type": "array", "items": {"type": "object"}}
            for name, one in STANDARD_TYPES.items()
        },
        "additionalProperties": False,
    },
    ("RetentionEvent", "filters"): _list_of("Filter", "maxFilters"),
    ("FunnelStep", "filters"): _list_of("Filter", "maxFilters"),
    ("QueryRequest", "having"): _optional(
        type="array", items=_HAVING, maxItems=QUERY_LIMITS["maxHaving"]
    ),
    ("QueryRequest", "lastDays"): _LAST_DAYS,
    ("FunnelRequest", "lastDays"): _LAST_DAYS,
    ("RetentionRequest", "lastDays"): _LAST_DAYS,
    ("Query", "table"): {"enum": list(table_names())},
    ("Query", "selects"): {**_list_of("Select", "maxSelects"), "minItems": 1},
    ("Query", "filters"): _optional(**_list_of("Filter", "maxFilters")),
    ("Query", "groupBy"): _optional(
        type="array", items={"type": "string"}, maxItems=QUERY_LIMITS["maxGroupBy"]
    ),
    ("Select", "aggregate"): {"enum": [aggregate.value for aggregate in Aggregate]},
    ("Select", "alias"): _optional(
        type="string", minLength=1, maxLength=QUERY_LIMITS["maxAliasLength"]
    ),
    ("Select", "filters"): _optional(**_list_of("Filter", "maxSelectFilters")),
    ("Filter", "operator"): {"enum": [operator.value for operator in Operator]},
    ("Filter", "or"): _FILTER_ITEMS,
    ("Filter", "and"): _FILTER_ITEMS,
    ("OrderBy", "direction"): _optional(enum=["asc", "desc"]),
    **{
        (name, "name"): {"type": "string", "minLength": 1}
        for name in ("OrganizationBody", "NewWebsite", "WebsitePatch")
    },
    **{
        ("RetentionBody", name): _optional(type="integer", minimum=0, maximum=MAX_RETAIN_DAYS)
        for name in ("days", *(table.name for table in STORED_TABLES))
    },
    ("NewKey", "scopes"): {
        "type": "array",
        "items": {"$ref": f"{SCHEMA_PREFIX}{Scope.__name__}"},
        "minItems": 1,
    },
    ("SavedDefinition", "query"): {"$ref": f"{SCHEMA_PREFIX}QueryRequest"},
    ("EntryContentObject", "content"): {"$ref": f"{SCHEMA_PREFIX}EntryFile"},
    ("ErasureDryRun", "dryRun"): {"const": True},
    ("DeletedObject", "deleted"): {"const": True},
    ("RetriedEntryObject", "retried"): {"const": True},
    ("CountResponse", "type"): {"enum": ["custom_event", "web_vitals", "error", "engagement"]},
    ("BatchResponse", "batch"): {"const": True},
    ("BatchItemResult", "type"): {"const": "track"},
    ("SingleResponse", "type"): {"enum": ["track", "identify"]},
}
"""Rules that the types lack: the decoder accepts more, so that validation can name the error."""

SCHEMA_RULES: Mapping[str, Schema] = {
    "Filter": {
        "oneOf": [
            {
                "required": ["field", "operator", "value"],
                "properties": {"operator": {"enum": _VALUE_OPERATORS}},
            },
            {
                "required": ["field", "operator"],
                "properties": {"operator": {"enum": _PRESENCE_OPERATORS}, "value": _NULL},
            },
            {"required": ["or"]},
            {"required": ["and"]},
        ]
    },
}
"""Rules of whole objects."""
