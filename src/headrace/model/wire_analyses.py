"""The bodies of the query endpoints beside /v1/query/custom: funnels, retention, standard queries.

Scalars of the root have no types here, because each has an error code of its own.
"""

from typing import Any

from msgspec import Struct
from msgspec import field as encoded_field

from headrace.model.wire import Filter


class FunnelStep(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One step of a funnel: the events that match all of its filters."""

    filters: list[Filter]
    name: str | None = None


class FunnelRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The body of /v1/query/funnel."""

    steps: list[FunnelStep]
    window: Any = None
    by: Any = None
    start_date: Any = None
    end_date: Any = None
    last_days: Any = None
    timezone: Any = None
    group_by: str | None = None


class RetentionEvent(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The events that begin a cohort, or those that count as a return."""

    filters: list[Filter]


class RetentionRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The body of /v1/query/retention."""

    first: RetentionEvent
    returning: RetentionEvent = encoded_field(name="return")
    granularity: Any = None
    periods: Any = None
    by: Any = None
    start_date: Any = None
    end_date: Any = None
    last_days: Any = None
    timezone: Any = None


class StandardRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The body of /v1/query/standard."""

    types: list[str]
    filters: list[Filter] | None = None
    start_date: Any = None
    end_date: Any = None
    last_days: Any = None
    timezone: Any = None
    granularity: Any = None
    limit: Any = None
    compare: Any = None  # a name, or a `Compare` object
