"""Sessions: all events of a website that share a session id, over the session's whole life."""

from collections.abc import Mapping

from headrace.query.figures import (
    EVENTS_COUNTED,
    FIRST_MOMENT,
    FIRST_MS,
    FIRST_PATH,
    FIRST_REFERRER,
    LAST_MOMENT,
    LAST_MS,
    LAST_PATH,
    PAGE_VIEWS_COUNTED,
    as_number,
    first_text,
)

_BOUNCE_MOST_PAGE_VIEWS = 1
_BOUNCE_BELOW_MS = 10_000

_DURATION_MS = f"({LAST_MS} - {FIRST_MS})"

_FIGURES: Mapping[str, str] = {
    "session_id": "any(visit.session_id)",
    "entry_path": FIRST_PATH,
    "exit_path": LAST_PATH,
    "referrer": FIRST_REFERRER,
    "start_time": FIRST_MOMENT,
    "end_time": LAST_MOMENT,
    "is_bounce": (
        f"toBool({PAGE_VIEWS_COUNTED} <= {_BOUNCE_MOST_PAGE_VIEWS}"
        f" AND {_DURATION_MS} < {_BOUNCE_BELOW_MS})"
    ),
    "duration": as_number(f"{_DURATION_MS} / 1000"),
    "page_views": as_number(PAGE_VIEWS_COUNTED),
    "event_count": as_number(EVENTS_COUNTED),
}


def session_figure(column: str) -> str:
    """Return the SQL of a column of sessions: by its row above, else the first text."""
    return _FIGURES.get(column) or first_text(column)
