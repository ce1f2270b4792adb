"""The use case of the schema of a website: the names and keys that its latest events have."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from msgspec import Struct

from headrace.model.catalog import EVENTS, QUERY_LIMITS
from headrace.model.tenancy import WebsiteId
from headrace.query.execution import QueryExecution
from headrace.query.result_values import format_rows
from headrace.query.schema.statements import KINDS, compile_property_keys, event_names
from headrace.query.sql.compile import compile_query
from headrace.query.validate.dates import resolve_period
from headrace.query.validate.day_range import range_of_days

_UTC = ZoneInfo("UTC")


class EventName(Struct, frozen=True, rename="camel"):
    """A name of events, with the number of its events and the time of the last one."""

    name: str
    count: int
    last_seen: str


class PropertyKey(Struct, frozen=True):
    """A top-level key of properties, with the kinds of its values.

    `count` is the number of events in which it has a value.
    """

    key: str
    kinds: tuple[str, ...]
    count: int


class WebsiteSchema(Struct, frozen=True, rename="camel"):
    """What the latest events of a website have, each list with the most frequent first."""

    event_names: Sequence[EventName]
    properties: Sequence[PropertyKey]


class SchemaService:
    """Describes the latest events of websites; for one event loop and many tasks."""

    def __init__(self, execution: QueryExecution) -> None:
        self._execution = execution

    async def describe(self, website_id: WebsiteId) -> WebsiteSchema:
        """Return names and keys of the last days, those of bots left out.

        Raises what `QueryService.run` does, but for errors of a body.
        """
        with self._execution.counted() as running:
            running.table = EVENTS.name
            cutoffs = await self._execution.cutoffs(website_id)
            period = resolve_period(QUERY_LIMITS["schemaDays"], _UTC, self._execution.now_ms())
            days = range_of_days(*period, _UTC)
            dialect = self._execution.dialect
            plan = event_names(website_id, days, cutoffs)
            names = compile_query(plan, dialect)
            selected = await self._execution.select(names)
            kinds = [output.kind for output in names.outputs]
            keys = await self._execution.select(
                compile_property_keys(website_id, days, cutoffs, dialect)
            )
            return WebsiteSchema(
                [EventName(*row) for row in format_rows(selected.rows[: plan.limit], kinds)],
                [PropertyKey(key, _kinds(int(bits)), int(n)) for key, bits, n in keys.rows],
            )


def _kinds(bits: int) -> tuple[str, ...]:
    return tuple(kind for position, kind in enumerate(KINDS) if bits >> position & 1)
