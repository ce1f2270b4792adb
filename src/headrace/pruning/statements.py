"""The statements of pruning: what is stored of each website, and which rows to delete."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from headrace.model.catalog import Table
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.query.sql.builder import Parameters, clause, statement

WEBSITES_PER_DELETION: Final = 2_000
"""About 100 kB of a mutation's text, whose limit in ClickHouse is 256 KiB."""

_TIME_MS: Final = "toUnixTimestamp64Milli(time)"


def describe_rows(
    table: Table,
    cutoffs_ms: Mapping[WebsiteId, int],
    website_id: WebsiteId | None,
    *,
    received_before_ms: int | None,
) -> CompiledQuery:
    """Return the statement for the rows of one website, or of every website that has rows.

    Its columns are the website, the rows from its cutoff on and those before it, and the times of
    the first and last row from the cutoff on, 0 without one. With `received_before_ms` the rows
    before the cutoff are those that were received before it.
    """
    parameters = Parameters()
    # `transform` takes no empty arrays. No row has the website "".
    websites = parameters.bind(["", *cutoffs_ms], "Array(String)")
    cutoffs = parameters.bind([0, *cutoffs_ms.values()], "Array(Int64)")
    is_kept = f"{_TIME_MS} >= transform(website_id, {websites}, {cutoffs}, toInt64(0))"
    conditions = (
        [] if website_id is None else [f"website_id = {parameters.bind(website_id, 'String')}"]
    )
    sql = statement(
        f"WITH {is_kept} AS is_kept",
        clause(
            "SELECT",
            ",",
            [
                "website_id",
                "countIf(is_kept)",
                f"countIf(NOT is_kept{_received_before(received_before_ms)})",
                f"minIf({_TIME_MS}, is_kept)",
                f"maxIf({_TIME_MS}, is_kept)",
            ],
        ),
        f"FROM {table.name}",
        clause("WHERE", " AND", conditions),
        "GROUP BY website_id",
    )
    return CompiledQuery(sql, parameters.values, (), website_id or "")


def deletions(cutoffs_ms: Mapping[WebsiteId, int], *, received_before_ms: int | None) -> list[str]:
    """Return the conditions that delete rows before cutoffs, each as SQL for one mutation.

    With `received_before_ms` they leave rows that were received later.
    """
    received = _received_before(received_before_ms)
    names = sorted(cutoffs_ms)
    return [
        f"({' OR '.join(_before_cutoffs(names[start:end], cutoffs_ms))}){received}"
        for start in range(0, len(names), WEBSITES_PER_DELETION)
        for end in (start + WEBSITES_PER_DELETION,)
    ]


def _received_before(received_before_ms: int | None) -> str:
    """Return the end of a condition; a row id begins with the time of receipt."""
    if received_before_ms is None:
        return ""
    receipt = received_before_ms.to_bytes(6, "big").hex()
    return f" AND substring(id, 1, 6) < unhex('{receipt}')"


def _before_cutoffs(names: list[WebsiteId], cutoffs_ms: Mapping[WebsiteId, int]) -> list[str]:
    """Return a condition for each cutoff. Hexadecimal digits need no quoting."""
    websites: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        websites[cutoffs_ms[name]].append(f"unhex('{name.encode().hex()}')")
    return [
        f"(website_id IN ({', '.join(ids)}) "
        f"AND time < fromUnixTimestamp64Milli({cutoff_ms}, 'UTC'))"
        for cutoff_ms, ids in sorted(websites.items())
    ]
