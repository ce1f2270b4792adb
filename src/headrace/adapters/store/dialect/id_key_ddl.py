"""The stored keys of visitors and sessions: generated columns of `events`.

Parts from before have no keys: there they are computed when they are read, until the mutation that
stores them has reached the part.
"""

from typing import Final

from headrace.adapters.store.dialect.statements import AlterTable, Statement
from headrace.formats.id_keys import ID_KEYS, KEY_TYPE, key_of
from headrace.model.catalog import EVENTS

ADD_ID_KEYS: Final = AlterTable(
    name=EVENTS.name,
    change=", ".join(
        f"ADD COLUMN IF NOT EXISTS `{key}` {KEY_TYPE} MATERIALIZED {key_of(column)}"
        for column, key in ID_KEYS.items()
    ),
)

START_STORING: Final = AlterTable(
    name=EVENTS.name,
    change=", ".join(f"MATERIALIZE COLUMN `{key}`" for key in ID_KEYS.values()),
    settings={"mutations_sync": 0},
    is_mutation=True,
)
"""Starts to store the keys in parts from before. Queries and inserts go on meanwhile; after a stop
the engine continues at the next start."""

STATEMENTS: Final[tuple[Statement, ...]] = (ADD_ID_KEYS, START_STORING)
