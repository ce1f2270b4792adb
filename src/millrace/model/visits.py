"""Visits: what the store keeps beside the events, to make sessions and profiles of them fast.

A visit is all events of one website that share the UTC day, session, person and labels. A session
or a person is made of few of them: of one for most sessions.
"""

from millrace.model.catalog import EVENTS, SESSIONS

VISITS = "visits"

VISIT_LABELS: tuple[str, ...] = tuple(
    column.name
    for column in EVENTS.columns
    if column.few_values and SESSIONS.column(column.name) is not None
)
"""The texts that every event of a visit has alike; the columns that both derived tables have."""

DAY_MS = 86_400_000
"""The length of a visit's `day`, which counts from 1970 in UTC."""

PLACE_BITS = 128
"""An event's place is its time in epoch milliseconds above so many bits of its id: places sort by
time, then by arrival, and no two events have the same one."""

NO_MARK = 0
"""The `session_mark` and `person_mark` of events without such an id, and of no other events.

A mark is a short hash that several ids may share. A key is a hash of 128 bits, like those by which
the store counts distinct texts exactly: it stands for its id."""
