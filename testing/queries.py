"""Query bodies for tests without HTTP, and functions that run them over a test's tables."""

import asyncio
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.base.clock import Clock, FixedClock
from headrace.base.errors import HeadraceError, InvalidQuery
from headrace.base.metrics import Metrics
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.plan import CompiledQuery, QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.ports.background import ArgumentT, BackgroundProcess, ResultT
from headrace.ports.rows.retention import FixedCutoffs
from headrace.ports.store import (
    CHDB_DIALECT,
    Dialect,
    QueryLimits,
    Store,
    StoreResult,
    StoreStatus,
)
from headrace.query.execution import QueryExecution
from headrace.query.result_values import QueryResult
from headrace.query.service import QueryService
from headrace.query.sql.compile import compile_query
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query
from testing.chdb import LIMITS
from testing.tables import Tables

Json = Any
Item = Mapping[str, Json]

WEBSITE = WebsiteId("web_1")
COUNT: Item = {"field": "*", "aggregate": "count", "alias": "n"}


class PickledCalls:
    """A `BackgroundProcess` that makes the calls here, with what a process would get and return."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self, function: Callable[[ArgumentT], ResultT], argument: ArgumentT) -> ResultT:
        self.count += 1
        try:
            result = _pickled(function)(_pickled(argument))
        except HeadraceError as error:
            raise _pickled(error) from None
        return _pickled(result)


def _pickled(value: ResultT) -> ResultT:
    copy: ResultT = pickle.loads(pickle.dumps(value))  # noqa: S301 - of a test
    return copy


def select(field: str, aggregate: str, alias: str | None = None) -> dict[str, Json]:
    """Return a select object; without an alias if `alias` is None."""
    return {"field": field, "aggregate": aggregate, **({"alias": alias} if alias else {})}


def where(field: str, operator: str, value: Json) -> dict[str, Json]:
    """Return a filter object."""
    return {"field": field, "operator": operator, "value": value}


def in_groups(inner: Item, depth: int) -> Item:
    """Return a filter within this number of groups."""
    return inner if depth == 0 else {"or": [in_groups(inner, depth - 1)]}


def query_body(
    *selects: Item,
    table: str = "events",
    filters: Sequence[Json] = (),
    group_by: Sequence[Json] = (),
    **root: Json,
) -> dict[str, Json]:
    """Return a query body. By default it counts the rows of January 2026 as `n`."""
    query = {
        "table": table,
        "selects": list(selects or [COUNT]),
        "filters": list(filters),
        "groupBy": list(group_by),
    }
    return {"query": query, "startDate": "2026-01-01", "endDate": "2026-01-31", **root}


def selecting(
    field: str, aggregate: str, alias: str | None = None, **parts: Json
) -> dict[str, Json]:
    """Return the body of a query with one select, whose alias is null unless given."""
    return query_body({**select(field, aggregate), "alias": alias}, **parts)


def filtering(field: str, operator: str, value: Json, **parts: Json) -> dict[str, Json]:
    """Return the body of a query with one filter."""
    return query_body(filters=[where(field, operator, value)], **parts)


def plan_of(body: Json, cutoffs: Cutoffs = NO_CUTOFFS) -> QueryPlan:
    """Return the plan of a valid body."""
    return check_query(decode_query(as_bytes(body)), WEBSITE, cutoffs, now_ms=0)


def statement_of(body: Json, dialect: Dialect = CHDB_DIALECT) -> CompiledQuery:
    """Return the statement of a valid body."""
    return compile_query(plan_of(body), dialect)


def rejection_of(body: Json) -> tuple[str, str]:
    """Return the code and the message with which a body is rejected."""
    try:
        plan_of(body)
    except InvalidQuery as refusal:
        return refusal.code.name, str(refusal)
    raise AssertionError("the body is valid")


def as_bytes(body: Json) -> bytes:
    """Encode a body as JSON, unless it is bytes already."""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


class TablesOfTest:
    """The `Store` over one test's tables, without the engine process."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        return self._tables.result(query, limits)

    async def status(self) -> StoreStatus:
        return StoreStatus.READY


def run_query(
    tables: Tables, body: Json, cutoffs: Cutoffs = NO_CUTOFFS, clock: Clock | None = None
) -> QueryResult:
    """Run a query over a test's tables."""
    service = QueryService(execution_over(tables, clock, cutoffs))
    return asyncio.run(service.run(WEBSITE, as_bytes(body)))


def execution_over(
    tables: Tables, clock: Clock | None = None, cutoffs: Cutoffs = NO_CUTOFFS
) -> QueryExecution:
    """Return what use cases of queries need to run over a test's tables."""
    return execution_over_store(TablesOfTest(tables), clock, tables.dialect, cutoffs)


def execution_over_store(
    store: Store,
    clock: Clock | None = None,
    dialect: Dialect = CHDB_DIALECT,
    cutoffs: Cutoffs = NO_CUTOFFS,
    background: BackgroundProcess | None = None,
) -> QueryExecution:
    """Return what use cases of queries need to run over a store."""
    return QueryExecution(
        store=store,
        limits=LIMITS,
        metrics=Metrics(),
        clock=clock or FixedClock(0),
        dialect=dialect,
        cutoffs=FixedCutoffs(cutoffs),
        background=background or PickledCalls(),
    )


def query_rows(tables: Tables, body: Json) -> list[dict[str, Json]]:
    """Run a query over a test's tables and return its rows by output name."""
    answer = run_query(tables, body)
    return [dict(zip(answer.names, row, strict=True)) for row in answer.rows]
