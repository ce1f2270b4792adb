"""SQL over the visits of one session or one person, that both derived tables are made with."""

from headrace.model.visits import VISIT_LABELS

EVENTS_COUNTED = "sum(visit.event_count)"
PAGE_VIEWS_COUNTED = "sum(visit.page_views)"
FIRST_MS = "min(visit.first_ms)"
LAST_MS = "max(visit.last_ms)"
FIRST_MOMENT = f"fromUnixTimestamp64Milli({FIRST_MS}, 'UTC')"
LAST_MOMENT = f"fromUnixTimestamp64Milli({LAST_MS}, 'UTC')"
FIRST_PATH = "argMinIfMerge(visit.first_path)"
LAST_PATH = "argMaxIfMerge(visit.last_path)"
FIRST_REFERRER = "argMinIfMerge(visit.first_referrer)"

_OF_VISITS = frozenset({*VISIT_LABELS, "anonymous_id"})


def first_text(column: str) -> str:
    """Return the first text that is not empty, by time, then by arrival."""
    return f"argMinIf({_label(column)}, visit.first_place, {_label(column)} != '')"


def last_text(column: str) -> str:
    """Return the last text that is not empty, by time, then by arrival."""
    return f"argMaxIf({_label(column)}, visit.last_place, {_label(column)} != '')"


def as_number(figure: str) -> str:
    """Give a figure the type of stored numbers, so that aggregates over no rows are null."""
    return f"toNullable(toFloat64({figure}))"


def _label(column: str) -> str:
    """All events of a visit have the same text, so its first and last place are those of it."""
    if column not in _OF_VISITS:
        raise KeyError(column)
    return f"visit.{column}"
