"""Late, out-of-order and repeated events give the same sessions and profiles as one insert.

Sessions cross midnight and the bounds of the range, last for days, or share timestamps. The same
events are stored in random batches and orders, with repeated batches, and merged in between.
"""

import random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.model.catalog import EVENTS
from testing.chdb import FreshStore, Row
from testing.examples import examples
from testing.queries import WEBSITE, query_body, run_query, select
from tests.e2e.query.queries import alike
from tests.oracle import Stored, evaluate_query

DAY_MS = 86_400_000
NEW_YEAR_MS = 1_767_225_600_000  # 2026-01-01
FIRST_MS, LAST_MS = NEW_YEAR_MS - 3 * DAY_MS, NEW_YEAR_MS + 5 * DAY_MS
MIDNIGHTS = range(FIRST_MS, LAST_MS, DAY_MS)
NO_TEXTS = {column.name: "" for column in EVENTS.columns if column.kind.value == "text"} | {
    "website_id": WEBSITE
}

timestamps = st.one_of(
    st.integers(FIRST_MS, LAST_MS),
    st.builds(
        int.__add__, st.sampled_from(MIDNIGHTS), st.sampled_from((-3_600_000, -1, 0, 1, 9_999))
    ),
)
labels = st.sampled_from(("", "a", "b"))
events = st.fixed_dictionaries(
    {
        "time": timestamps,
        "event_name": st.sampled_from(("screen_view", "click")),
        "session_id": st.sampled_from(("", "s1", "s2", "s3")),
        "anonymous_id": st.sampled_from(("", "u1", "u2")),
        "path": st.sampled_from(("", "/", "/a")),
        "referrer": st.sampled_from(("", "r1", "r2")),
        "country": labels,
        "utm_source": labels,
        "device_type": labels,
        "is_bot": st.sampled_from((False, False, False, True)),
    }
)
SELECTS: dict[str, list[str]] = {
    "sessions": ["duration", "page_views", "event_count"],
    "profiles": ["session_count", "page_views", "event_count"],
}
GROUPS: dict[str, list[list[str]]] = {
    "sessions": [
        ["session_id", "anonymous_id", "entry_path", "exit_path", "referrer"],
        ["session_id", "country", "utm_source", "device_type", "is_bounce"],
        ["session_id", "start_time", "end_time"],
    ],
    "profiles": [
        ["anonymous_id", "referrer", "country", "utm_source", "device_type"],
        ["anonymous_id", "first_seen", "last_seen"],
    ],
}
RANGES = (
    {"startDate": "2026-01-01", "endDate": "2026-01-02"},
    {"startDate": "2026-01-02", "endDate": "2026-01-02", "timezone": "Asia/Kathmandu"},
    {"startDate": "2025-12-31", "endDate": "2026-01-01", "timezone": "America/St_Johns"},
)
BODIES = [
    query_body(*(select(name, "sum") for name in names), table=table, group_by=group, **days)
    for table, names in SELECTS.items()
    for group in GROUPS[table]
    for days in RANGES
]


def numbered(rows: list[Row]) -> list[Row]:
    """Give rows ids in order of arrival."""
    return [
        {**NO_TEXTS, **row, "id": number.to_bytes(16), "received_at": row["time"]}
        for number, row in enumerate(rows)
    ]


def store_shuffled(store: FreshStore, rows: list[Row], random_source: random.Random) -> None:
    """Store rows in batches of any size and order, some of them twice, with merges in between."""
    shuffled = random_source.sample(rows, len(rows))
    while shuffled:
        size = random_source.randint(1, 20)
        batch, shuffled = shuffled[:size], shuffled[size:]
        token = str(random_source.random())
        for _ in range(random_source.choice((1, 1, 2))):
            store.insert(EVENTS, batch, token=token)
        if random_source.random() < 0.2:
            store.engine.execute(f"OPTIMIZE TABLE `{store.database}`.events FINAL")


def answers_of(store: FreshStore) -> list[Any]:
    sent_query = [run_query(store, body) for body in BODIES]
    return [[dict(zip(one.names, row, strict=True)) for row in one.rows] for one in sent_query]


@settings(
    max_examples=examples(4),
    phases=(Phase.generate,),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.differing_executors),
)
@given(rows=st.lists(events, min_size=5, max_size=50), seed=st.integers(0, 2**32))
def test_sessions_and_profiles_do_not_depend_on_arrival_order(
    chdb_engine: ChdbInstance, rows: list[Row], seed: int
) -> None:
    stored = numbered(rows)
    at_once, shuffled = FreshStore(chdb_engine), FreshStore(chdb_engine)
    try:
        at_once.insert(EVENTS, stored)
        store_shuffled(shuffled, stored, random.Random(seed))  # noqa: S311 - not a secret
        results = answers_of(at_once)
        assert answers_of(shuffled) == results
        expected = [evaluate_query(body, oracle_rows(stored)).rows for body in BODIES]
        assert alike(results, expected)
    finally:
        at_once.close()
        shuffled.close()


def oracle_rows(stored: list[Row]) -> Stored:
    missing: Row = {column.name: None for column in EVENTS.columns}
    rows: list[Any] = [
        {**missing, "properties": {}, **row, "arrival": number} for number, row in enumerate(stored)
    ]
    return Stored(events=rows, errors=[], performance=[])
