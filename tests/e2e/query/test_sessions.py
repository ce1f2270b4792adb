"""Sessions and profiles: how they are derived from events, and the time they belong to."""

from typing import Any

import pytest

from testing.service import Json, Row, Service
from tests.e2e.query.queries import alike, event, query, select, send, where

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


def view(at: str, **fields: Json) -> dict[str, Json]:
    return event("screen_view", at=f"2025-03-10T{at}Z", **fields)


def click(at: str, **fields: Json) -> dict[str, Json]:
    return event("click", at=f"2025-03-10T{at}Z", **fields)


def run_query(service: Service, website: str, table: str, *columns: str, **root: Any) -> list[Row]:
    """Return the given columns of each session or profile, ordered by its id."""
    key = "session_id" if table == "sessions" else "anonymous_id"
    filters = root.pop("filters", ())
    sent_query = query(table=table, group_by=[key, *columns][:5], filters=filters)
    rows = service.answer(website, sent_query, orderBy=[{"field": key}], **root)
    return [{name: row[name] for name in (key, *columns)} for row in rows]


def session(service: Service, website: str, *columns: str) -> list[Json]:
    """Return the given columns of the only session."""
    [row] = run_query(service, website, "sessions", *columns)
    return [row[column] for column in columns]


def profile(service: Service, website: str, *columns: str) -> list[Json]:
    """Return the given columns of the only profile."""
    [row] = run_query(service, website, "profiles", *columns)
    return [row[column] for column in columns]


# Sessions.


def test_session_consists_of_all_events_with_its_id(service: Service, website: str) -> None:
    send(
        service,
        website,
        view("10:00:00", sessionId="s1"),
        click("10:00:05.250", sessionId="s1"),
        view("10:01:00", sessionId="s2"),
        click("10:02:00"),
        click("10:02:00", sessionId=""),
    )
    columns = ("duration", "page_views", "event_count")
    assert run_query(service, website, "sessions", *columns) == [
        {"session_id": "s1", "duration": 5.25, "page_views": 1, "event_count": 2},
        {"session_id": "s2", "duration": 0, "page_views": 1, "event_count": 1},
    ]


@pytest.mark.parametrize("name", ["screen_view", "pageview", "page_view"])
def test_page_views_have_one_of_three_names(service: Service, website: str, name: str) -> None:
    sent = [event(name, sessionId="s"), event("page_exit", sessionId="s")]
    send(service, website, *sent)
    assert session(service, website, "page_views", "event_count") == [1, 2]


def test_session_begins_and_ends_with_its_first_and_last_event(
    service: Service, website: str
) -> None:
    send(service, website, click("12:00:00.001", sessionId="s"), click("11:00:00", sessionId="s"))
    send(service, website, click("13:00:00.999", sessionId="s"))
    assert session(service, website, "start_time", "end_time", "duration") == [
        "2025-03-10T11:00:00.000Z",
        "2025-03-10T13:00:00.999Z",
        7200.999,
    ]


BOUNCES = [
    pytest.param([view("10:00:00")], True, id="one page view"),
    pytest.param([click("10:00:00")], True, id="no page view"),
    pytest.param([view("10:00:00"), click("10:00:09.999")], True, id="just under 10 seconds"),
    pytest.param([view("10:00:00"), click("10:00:10")], False, id="10 seconds"),
    pytest.param([view("10:00:00"), view("10:00:01")], False, id="two page views"),
]


@pytest.mark.parametrize(("events", "is_bounce"), BOUNCES)
def test_bounce_has_at_most_one_page_view_and_less_than_ten_seconds(
    service: Service, website: str, events: list[dict[str, Json]], is_bounce: bool
) -> None:
    send(service, website, *({**one, "sessionId": "s"} for one in events))
    assert session(service, website, "is_bounce") == [is_bounce]


def test_entry_and_exit_path_are_of_the_first_and_last_event_that_has_one(
    service: Service, website: str
) -> None:
    send(
        service,
        website,
        click("10:00:00", sessionId="s"),
        click("10:00:04", sessionId="s", path="/out"),
        click("10:00:02", sessionId="s", path="/middle"),
        click("10:00:01", sessionId="s", path="/in"),
        click("10:00:05", sessionId="s"),
    )
    assert session(service, website, "entry_path", "exit_path") == ["/in", "/out"]


def test_events_with_equal_timestamps_are_ordered_by_arrival(
    service: Service, website: str
) -> None:
    send(
        service,
        website,
        *(click("10:00:00", sessionId="s", anonymousId=f"u{n}", path=f"/{n}") for n in (5, 3, 4)),
    )
    send(service, website, click("10:00:00", sessionId="s", anonymousId="u1", path="/1"))
    columns = ("entry_path", "exit_path", "anonymous_id")
    assert session(service, website, *columns) == ["/5", "/1", "u5"]


def test_texts_of_a_session_are_the_first_that_are_not_empty(
    service: Service, website: str
) -> None:
    def sent(at: str, properties: Json, **fields: Json) -> dict[str, Json]:
        return click(at, sessionId="s", properties=properties, **fields)

    send(
        service,
        website,
        sent("10:00:02", {"utm_source": "late", "referrer": "r2"}, anonymousId="u2", ip="1.1.1.1"),
        sent("10:00:03", {"utm_source": "x", "language": "de"}, userAgent=FIREFOX, ip="8.8.8.8"),
        sent("10:00:00", {}),
        sent("10:00:01", {"utm_source": "early"}, userAgent=CHROME),
    )
    columns = ("utm_source", "referrer", "anonymous_id", "language")
    assert session(service, website, *columns) == ["early", "r2", "u2", "de"]
    columns = ("browser_name", "os_name", "device_type", "country")
    assert session(service, website, *columns) == ["Chrome", "Windows", "desktop", "AU"]


@pytest.fixture(scope="module")
def night(service: Service) -> str:
    """A website with sessions over midnight (UTC), in the evening, and in the morning."""
    website = service.website()
    send(
        service,
        website,
        event("screen_view", at="2025-03-10T23:50:00Z", sessionId="over", anonymousId="u"),
        event("screen_view", at="2025-03-11T00:10:00Z", sessionId="over", anonymousId="u"),
        event("screen_view", at="2025-03-10T20:00:00Z", sessionId="evening", anonymousId="v"),
        event("screen_view", at="2025-03-11T08:00:00Z", sessionId="morning", anonymousId="v"),
    )
    return website


@pytest.mark.parametrize(
    ("day", "timezone", "expected"),
    [
        ("2025-03-10", "UTC", {"evening": 0, "over": 1200}),
        ("2025-03-11", "UTC", {"morning": 0}),
        ("2025-03-10", "Europe/Berlin", {"evening": 0}),
        ("2025-03-11", "Europe/Berlin", {"morning": 0, "over": 1200}),
    ],
)
def test_session_is_counted_in_full_on_the_day_it_started(
    service: Service, night: str, day: str, timezone: str, expected: dict[str, float]
) -> None:
    rows = run_query(service, night, "sessions", "duration", start=day, end=day, timezone=timezone)
    assert {row["session_id"]: row["duration"] for row in rows} == expected


def test_session_belongs_to_the_bucket_in_which_it_started(service: Service, night: str) -> None:
    sent_query = query(select("session_id", "count", "n"), table="sessions")
    days = {"start": "2025-03-10", "end": "2025-03-11"}
    assert service.answer(night, sent_query, granularity="daily", **days) == [
        {"date": "2025-03-10", "n": 2},
        {"date": "2025-03-11", "n": 1},
    ]
    assert service.answer(night, sent_query, granularity="hourly", **days) == [
        {"date": "2025-03-10 20:00:00", "n": 1},
        {"date": "2025-03-10 23:00:00", "n": 1},
        {"date": "2025-03-11 08:00:00", "n": 1},
    ]


def test_late_event_moves_the_start_of_its_session(service: Service, website: str) -> None:
    days = {"start": "2025-03-10", "end": "2025-03-10"}
    send(service, website, click("00:00:00", sessionId="s"))
    assert len(run_query(service, website, "sessions", **days)) == 1
    send(service, website, event(at="2025-03-09T23:59:59.999Z", sessionId="s"))
    assert run_query(service, website, "sessions", **days) == []


@pytest.mark.usefixtures("night")
def test_sessions_of_two_websites_with_one_id_are_two(service: Service, website: str) -> None:
    send(service, website, click("10:00:00", sessionId="over"))
    assert session(service, website, "event_count", "duration") == [1, 0]


def test_session_filters_apply_to_the_full_session(service: Service, night: str) -> None:
    filters = [where("page_views", "gte", 2)]
    assert run_query(service, night, "sessions", filters=filters) == [{"session_id": "over"}]
    filters = [where("is_bounce", "eq", True), where("start_time", "lt", "2025-03-11")]
    assert run_query(service, night, "sessions", filters=filters) == [{"session_id": "evening"}]


def test_aggregates_of_sessions_are_over_sessions(service: Service, night: str) -> None:
    sent_query = query(
        select("*", "count", "n"),
        select("duration", "avg", "mean"),
        select("duration", "p50", "median"),
        select("event_count", "sum", "events"),
        select("anonymous_id", "uniq", "visitors"),
        table="sessions",
    )
    expected = [{"n": 3, "mean": 400, "median": 0, "events": 4, "visitors": 2}]
    assert alike(service.answer(night, sent_query), expected)


# Profiles.


def test_profile_consists_of_all_events_with_its_anonymous_id(
    service: Service, website: str
) -> None:
    send(
        service,
        website,
        view("10:00:00", anonymousId="u", sessionId="s1"),
        click("10:00:05.5", anonymousId="u", sessionId="s1"),
        view("11:00:00", anonymousId="u", sessionId="s2"),
        click("12:00:00", anonymousId="u"),
        click("09:00:00", anonymousId="v"),
        click("09:00:00"),
    )
    columns = ("session_count", "event_count", "page_views")
    assert run_query(service, website, "profiles", *columns) == [
        {"anonymous_id": "u", "session_count": 2, "event_count": 4, "page_views": 2},
        {"anonymous_id": "v", "session_count": 0, "event_count": 1, "page_views": 0},
    ]


def test_profile_belongs_to_every_range_that_has_one_of_its_events(
    service: Service, night: str
) -> None:
    def names(start: str, end: str, timezone: str = "UTC") -> list[Json]:
        rows = run_query(service, night, "profiles", start=start, end=end, timezone=timezone)
        return [row["anonymous_id"] for row in rows]

    assert names("2025-03-10", "2025-03-10") == ["u", "v"]
    assert names("2025-03-11", "2025-03-11") == ["u", "v"]
    assert names("2025-03-10", "2025-03-10", "Europe/Berlin") == ["v"]
    assert names("2025-03-09", "2025-03-09") == []
    assert names("2025-03-12", "2025-03-31") == []


def test_profile_measures_cover_its_full_lifetime(service: Service, website: str) -> None:
    timestamps = ["2024-01-01T05:00:00Z", "2025-03-10T10:00:00Z", "2025-06-30T23:00:00Z"]
    sent = (event("pageview", at=at, anonymousId="u", sessionId=f"s{at}") for at in timestamps)
    send(service, website, *sent)
    rows = run_query(
        service,
        website,
        "profiles",
        "first_seen",
        "last_seen",
        "event_count",
        "session_count",
        start="2025-03-10",
        end="2025-03-10",
    )
    assert rows == [
        {
            "anonymous_id": "u",
            "first_seen": "2024-01-01T05:00:00.000Z",
            "last_seen": "2025-06-30T23:00:00.000Z",
            "event_count": 3,
            "session_count": 3,
        }
    ]


def test_profile_keeps_its_first_referrer_and_campaign_and_the_last_of_the_rest(
    service: Service, website: str
) -> None:
    def sent(at: str, properties: Json, **fields: Json) -> dict[str, Json]:
        return click(at, anonymousId="u", properties=properties, **fields)

    send(
        service,
        website,
        sent("10:00:03", {"utm_source": "b", "referrer": "r2", "language": ""}),
        sent("10:00:01", {"utm_source": "a", "language": "de"}, userAgent=CHROME, ip="8.8.8.8"),
        sent("10:00:02", {"utm_medium": "m", "language": "en"}, userAgent=FIREFOX, ip="1.1.1.1"),
        sent("10:00:00", {}),
    )
    columns = ("utm_source", "utm_medium", "referrer", "language")
    assert profile(service, website, *columns) == ["a", "m", "r2", "en"]
    columns = ("browser_name", "os_name", "device_type", "country")
    assert profile(service, website, *columns) == ["Firefox", "Linux", "desktop", "AU"]


def test_profile_filters_apply_to_the_full_profile(service: Service, night: str) -> None:
    filters = [where("session_count", "eq", 2)]
    day = {"start": "2025-03-11", "end": "2025-03-11"}
    assert run_query(service, night, "profiles", filters=filters, **day) == [{"anonymous_id": "v"}]
    filters = [where("first_seen", "gte", "2025-03-10T23:00:00Z")]
    assert run_query(service, night, "profiles", filters=filters, **day) == [{"anonymous_id": "u"}]
