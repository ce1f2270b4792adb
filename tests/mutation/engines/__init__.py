"""Wrong engines by hand, a module for each area."""

from typing import Final

from tests.mutation.engines import (
    aggregates,
    comparisons,
    conditions,
    operators,
    order_and_pages,
    paths,
    properties,
    result_values,
    rollup,
    saved,
    sessions_and_profiles,
    standard,
    times,
    visible_rows,
)
from tests.mutation.wrong_engine import WrongEngine

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    *operators.WRONG_ENGINES,
    *conditions.WRONG_ENGINES,
    *aggregates.WRONG_ENGINES,
    *properties.WRONG_ENGINES,
    *order_and_pages.WRONG_ENGINES,
    *times.WRONG_ENGINES,
    *sessions_and_profiles.WRONG_ENGINES,
    *visible_rows.WRONG_ENGINES,
    *rollup.WRONG_ENGINES,
    *result_values.WRONG_ENGINES,
    *comparisons.WRONG_ENGINES,
    *paths.WRONG_ENGINES,
    *standard.WRONG_ENGINES,
    *saved.WRONG_ENGINES,
)
