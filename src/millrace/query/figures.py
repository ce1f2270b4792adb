"""SQL over the events of one session or one person, that both derived tables are made with."""

from millrace.model.catalog import PAGE_VIEW_NAMES

_NAMES = ", ".join(f"'{name}'" for name in PAGE_VIEW_NAMES)

EVENTS_COUNTED = "count()"
PAGE_VIEWS_COUNTED = f"countIf(event.event_name IN ({_NAMES}))"
FIRST_MOMENT = "min(event.time)"
LAST_MOMENT = "max(event.time)"


def first_text(column: str) -> str:
    """Return the first text that is not empty, by time, then by arrival, which ids sort by."""
    return f"argMinIf(event.{column}, (event.time, event.id), event.{column} != '')"


def last_text(column: str) -> str:
    """Return the last text that is not empty, by time, then by arrival."""
    return f"argMaxIf(event.{column}, (event.time, event.id), event.{column} != '')"


def as_number(figure: str) -> str:
    """Give a figure the type of stored numbers, so that aggregates over no rows are null."""
    return f"toNullable(toFloat64({figure}))"
