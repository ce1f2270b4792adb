"""Entity tags of the answers of saved queries: a tag changes when the answer may have changed.

A tag is weak: the metadata of an answer, such as its time, is not part of it.
"""

import hashlib
from typing import Any, Final

import msgspec

from headrace.model.catalog import EVENTS
from headrace.model.plan import QueryPlan
from headrace.ports.rows.versions import ALL_TIME, RowRange
from headrace.query.result_values import QueryResult

_DIGEST_BYTES: Final = 16
_ENCODER: Final = msgspec.json.Encoder()
"""Not MessagePack: properties have integers past its 64 bits."""


def ranges_of(plan: QueryPlan) -> tuple[RowRange, ...]:
    """Return the rows that the answer of a plan is made of.

    Sessions and profiles have events of any time: they begin before the range, or last longer.
    """
    if plan.table.is_derived:
        return (RowRange(EVENTS.name, *ALL_TIME),)
    return tuple(RowRange(plan.table.name, each.start_ms, each.end_ms) for each in plan.ranges)


def versioned_tag(body: bytes, plan: QueryPlan, media_format: str, version: str) -> str:
    """Return the tag of an answer over rows of a version, which need not be known."""
    return _tag((*_identity(body, plan, media_format), _first_visible_ms(plan), version))


def content_tag(body: bytes, plan: QueryPlan, media_format: str, result: QueryResult) -> str:
    """Return the tag of an answer by what is in it."""
    comparison = None if result.comparison is None else list(result.comparison.present)
    content = (
        result.rows,
        result.others,
        result.limit,
        result.truncated,
        result.totals,
        comparison,
    )
    return _tag((*_identity(body, plan, media_format), content))


def _identity(body: bytes, plan: QueryPlan, media_format: str) -> tuple[Any, ...]:
    """Return the query and its range at this time: midnight may have moved it."""
    days = plan.range
    return (media_format, hashlib.sha256(body).digest(), days.first_day, days.last_day)


def _first_visible_ms(plan: QueryPlan) -> list[int]:
    """Return from when on the rows of each range count: a cutoff takes out those before it."""
    return [
        rows.start_ms
        if plan.cutoff_ms is None
        else min(max(plan.cutoff_ms, rows.start_ms), rows.end_ms)
        for rows in ranges_of(plan)
    ]


def _tag(parts: tuple[Any, ...]) -> str:
    digest = hashlib.blake2b(_ENCODER.encode(parts), digest_size=_DIGEST_BYTES)
    return f'W/"{digest.hexdigest()}"'
