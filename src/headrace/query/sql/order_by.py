"""The order of rows, as SQL and, for filled results, as a sort in Python. Both are total orders.

null comes last in both directions, texts are ordered by code point. Values of a property are
ordered by type: numbers by value, then false and true, then texts, then objects and arrays by
their JSON text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from headrace.model.plan import Direction, Output, OutputKind, QueryPlan

_JSON_RANKS: Mapping[str, int] = {"t": 2, "f": 2, '"': 3, "{": 4, "[": 4}
_NUMBER_RANK = 1
_TEXT_RANK = _JSON_RANKS['"']


class OrderKey(Struct, frozen=True):
    """One key of the order; `index` is that of a result column, from 0."""

    index: int
    kind: OutputKind
    direction: Direction


def order_keys(plan: QueryPlan, outputs: Sequence[Output]) -> tuple[OrderKey, ...]:
    """Return the keys of the query, then the default keys, which break all ties.

    The default keys are `date`, then, with groups, the first select, descending, and the groups.
    """
    buckets = 0 if plan.granularity is None else 1
    first_select = buckets + len(plan.group_by)
    requested = [(key.output_name, key.direction) for key in plan.order_by]
    defaults = [(output.name, Direction.ASC) for output in outputs[:first_select]]
    if plan.group_by:
        defaults.insert(buckets, (outputs[first_select].name, Direction.DESC))
    indexes = {output.name: index for index, output in enumerate(outputs)}
    directions: dict[int, Direction] = {}
    for name, direction in [*requested, *defaults]:
        directions.setdefault(indexes[name], direction)
    return tuple(
        OrderKey(index, outputs[index].kind, direction) for index, direction in directions.items()
    )


def write_order(keys: Sequence[OrderKey], columns: Sequence[str]) -> list[str]:
    """Return the terms of ORDER BY; `columns` are the SQL names of the result's columns."""
    terms: list[str] = []
    for key in keys:
        column, direction = columns[key.index], key.direction.value.upper()
        if key.kind is OutputKind.JSON:
            terms += _json_terms(column, direction)
        else:
            terms.append(f"{column} {direction} NULLS LAST")
    return terms


def sort_rows(rows: list[list[Any]], keys: Sequence[OrderKey]) -> None:
    """Sort rows in place; their values are as the store returns them."""
    for key in reversed(keys):
        _sort_by(rows, key)


def _sort_by(rows: list[list[Any]], key: OrderKey) -> None:
    present = [row for row in rows if row[key.index] is not None]
    missing = [row for row in rows if row[key.index] is None]
    sort_key = _json_key if key.kind is OutputKind.JSON else _scalar_key
    present.sort(key=lambda row: sort_key(row[key.index]), reverse=key.direction is Direction.DESC)
    rows[:] = present + missing


def _json_terms(column: str, direction: str) -> list[str]:
    first_characters = list(_JSON_RANKS)
    ranks = [_JSON_RANKS[first_character] for first_character in first_characters]
    rank = f"transform(left({column}, 1), {first_characters}, {ranks}, {_NUMBER_RANK})"
    return [
        f"isNull({column}) ASC",
        f"{rank} {direction}",
        f"toFloat64OrNull({column}) {direction} NULLS LAST",
        f"if(startsWith({column}, '\"'), left({column}, -1), {column}) {direction} NULLS LAST",
    ]


def _scalar_key(value: Any) -> Any:  # noqa: ANN401 - a value of the store
    return value


def _json_key(value: str) -> tuple[int, float, str]:
    rank = _JSON_RANKS.get(value[0], _NUMBER_RANK)
    text = (
        value[:-1] if rank == _TEXT_RANK else value
    )  # without the closing quotation mark, so that a prefix comes first
    return rank, float(value) if rank == _NUMBER_RANK else 0.0, text
