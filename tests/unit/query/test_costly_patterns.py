"""Patterns that take long to compile: which they are, and that no event loop compiles them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headrace.base.errors import InvalidQuery, StoreUnavailable
from headrace.model.plan import CompiledQuery
from headrace.ports.store import QueryLimits, StoreResult, StoreStatus
from headrace.query.execution import QueryExecution
from headrace.query.funnel.service import FunnelService
from headrace.query.retention.service import RetentionService
from headrace.query.service import QueryService
from headrace.query.standard.service import StandardService
from headrace.query.validate.conditions.patterns import are_costly
from testing.queries import (
    COUNT,
    WEBSITE,
    PickledCalls,
    as_bytes,
    execution_over_store,
    query_body,
    where,
)

COSTLY = r"(\PN*){900}"
DAYS = {"startDate": "2026-01-01", "endDate": "2026-01-31"}


class NoStore:
    """A store that is away: what reaches it was checked."""

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        raise StoreUnavailable(f"{query.sql} within {limits.timeout_s} s")

    async def status(self) -> StoreStatus:
        return StoreStatus.UNAVAILABLE


Service = QueryService | FunnelService | RetentionService | StandardService
MATCHES = where("path", "matches", COSTLY)
OTHER = where("path", "matches", "^/blog/.*[.]html$")


def a_funnel(*filters: Any) -> dict[str, Any]:
    return {"steps": [{"filters": [OTHER]}, {"filters": list(filters)}], **DAYS}


def a_retention(first: Any, returning: Any) -> dict[str, Any]:
    events = {"first": {"filters": [first]}, "return": {"filters": [returning]}}
    return {**events, "granularity": "weekly", "periods": 2, **DAYS}


CALLS: list[tuple[Callable[[QueryExecution], Service], Any, int]] = [
    (QueryService, query_body(COUNT, filters=[OTHER]), 0),
    (QueryService, query_body(COUNT, filters=[OTHER, MATCHES]), 1),
    (QueryService, query_body(COUNT, filters=[{"or": [OTHER, {"and": [MATCHES]}]}]), 1),
    (QueryService, query_body({**COUNT, "filters": [MATCHES]}), 1),
    (FunnelService, a_funnel(OTHER), 0),
    (FunnelService, a_funnel(OTHER, MATCHES), 1),
    (RetentionService, a_retention(OTHER, OTHER), 0),
    (RetentionService, a_retention(MATCHES, OTHER), 1),
    (RetentionService, a_retention(OTHER, MATCHES), 1),
    (StandardService, {"types": ["summary", "online"], "filters": [], **DAYS}, 0),
    (StandardService, {"types": ["pages"], "filters": [MATCHES], **DAYS}, 1),
]


@pytest.mark.parametrize(("make", "body", "calls"), CALLS, ids=range(len(CALLS)))
def test_costly_patterns_are_checked_in_the_background(
    make: Callable[[QueryExecution], Service], body: Any, calls: int
) -> None:
    background = PickledCalls()
    service = make(execution_over_store(NoStore(), background=background))
    with pytest.raises(StoreUnavailable):
        asyncio.run(service.run(WEBSITE, as_bytes(body)))
    assert background.count == calls


def test_what_the_background_refuses_has_its_code_and_its_text() -> None:
    service = QueryService(execution_over_store(NoStore()))
    body = query_body(COUNT, filters=[where("path", "matches", r"\pL{900}")])
    with pytest.raises(InvalidQuery, match="pattern too large") as refused:
        asyncio.run(service.run(WEBSITE, as_bytes(body)))
    assert refused.value.code.name == "INVALID_VALUE"


def test_one_costly_pattern_or_many_long_ones_are_costly() -> None:
    cheap = [r"^/blog/[^/]+/\d{4}-\d{2}$", "(?i)landing", ".*" * 128, "[^a]{2,9}", "a{", "", "é"]
    cheap += [r"^\pL+$", r"[\p{Greek}\d]"]
    assert not are_costly(cheap)
    for costly in (
        COSTLY,
        f"{COSTLY}b{{0}}",
        r"\pL{20}",
        r"[\pL\pN][\pL\pM\pN]*\pL",
        "a{1000}{1000}",
        "(?:.{70}){70}",
        "[^a]{9,1000}",
    ):
        assert are_costly([costly])
    assert are_costly([".*" * 128] * 17)
    assert not are_costly(["(.{1000}){1000}" * 100])  # refused for its length
