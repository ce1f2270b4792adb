"""Profiles: all events of a website that share an anonymous id, over the person's whole life."""

from collections.abc import Mapping

from headrace.model.visits import NO_KEY
from headrace.query.figures import (
    EVENTS_COUNTED,
    FIRST_MOMENT,
    FIRST_REFERRER,
    LAST_MOMENT,
    PAGE_VIEWS_COUNTED,
    as_number,
    first_text,
    last_text,
)

_FROM_THE_BEGINNING = "utm_"
"""What brought the person here the first time; other labels are as they were seen last."""

_FIGURES: Mapping[str, str] = {
    "anonymous_id": "any(visit.anonymous_id)",
    "referrer": FIRST_REFERRER,
    "first_seen": FIRST_MOMENT,
    "last_seen": LAST_MOMENT,
    "session_count": as_number(f"uniqExactIf(visit.session_key, visit.session_key != {NO_KEY})"),
    "event_count": as_number(EVENTS_COUNTED),
    "page_views": as_number(PAGE_VIEWS_COUNTED),
}


def profile_figure(column: str) -> str:
    """Return the SQL of a column of profiles: by its row above, else the first or last text."""
    if column in _FIGURES:
        return _FIGURES[column]
    is_first = column.startswith(_FROM_THE_BEGINNING)
    return first_text(column) if is_first else last_text(column)
