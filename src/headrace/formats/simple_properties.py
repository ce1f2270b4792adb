"""Which properties are simple: a text search then finds each of their values.

A simple document has neither an escape nor a nested object. The store tests those of events when
rows are inserted (ADR 9).
"""

from typing import Final

IS_SIMPLE_COLUMN: Final = "has_simple_properties"
"""The column of `events` that is 1 for rows with simple properties, and 0 for others."""

IS_SIMPLE: Final = (
    " + ".join(f"position(properties, '{token}')" for token in (r"\\", ':{"', ',{"', '[{"'))
    + " = 0"
)
"""SQL for the value of `IS_SIMPLE_COLUMN`."""
