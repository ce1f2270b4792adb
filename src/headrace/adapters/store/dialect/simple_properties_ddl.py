"""The stored test for simple properties: a generated column of `events`.

Parts from before have none: there it is computed when they are read, until the mutation that stores
it has reached the part.
"""

from typing import Final

from headrace.adapters.store.dialect.statements import AlterTable, Statement
from headrace.formats.simple_properties import IS_SIMPLE, IS_SIMPLE_COLUMN
from headrace.model.catalog import EVENTS

STATEMENTS: Final[tuple[Statement, ...]] = (
    AlterTable(
        name=EVENTS.name,
        change=f"ADD COLUMN IF NOT EXISTS `{IS_SIMPLE_COLUMN}` UInt8 MATERIALIZED {IS_SIMPLE}",
    ),
    AlterTable(
        name=EVENTS.name,
        change=f"MATERIALIZE COLUMN `{IS_SIMPLE_COLUMN}`",
        settings={"mutations_sync": 0},
        is_mutation=True,
    ),
)
