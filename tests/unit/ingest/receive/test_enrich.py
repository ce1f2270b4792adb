import asyncio
import itertools
import re
import threading
from itertools import pairwise

import pytest

from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock, utc_day
from headrace.base.errors import OperatorError
from headrace.ingest.receive.enrich import (
    ADDRESS_ERROR,
    USER_AGENT_ERROR,
    VISITORS_AT_ONCE,
    Enricher,
    Enrichment,
    check_address,
    check_user_agent,
    check_visitors,
)
from headrace.ingest.receive.visitor_salts import DailySalts, expire_salts
from headrace.model.log_records import Visitor
from headrace.model.wire import CustomEvent
from testing.tenants import NOW_MS
from testing.visitors import (
    CHROME,
    CRAWLER,
    FRENCH,
    GERMAN,
    TableGeo,
    TableUserAgents,
    enricher,
    salt_of,
)

BERLIN_VISITOR = Visitor("DE", "Berlin", "Berlin", "Chrome", "126", "macOS", "10.15", "desktop")
KNOWN = CustomEvent(name="a", anonymous_id="anon_1")
UNKNOWN = CustomEvent(name="a")


async def enrich(
    *items: CustomEvent,
    by: Enricher | None = None,
    website_id: str = "shop",
    address: str = GERMAN,
    user_agent: str = CHROME,
    now_ms: int = NOW_MS,
) -> Enrichment:
    return await (by or enricher()).enrich_client(
        has_anonymous_ids=all(item.anonymous_id for item in items),
        website_id=website_id,
        address=address,
        user_agent=user_agent,
        now_ms=now_ms,
    )


async def test_client_is_identified_by_its_address_and_user_agent() -> None:
    assert await enrich(KNOWN) == Enrichment(BERLIN_VISITOR)


async def test_client_may_be_a_bot() -> None:
    enrichment = await enrich(KNOWN, user_agent=CRAWLER, address=FRENCH)

    assert enrichment.visitor == Visitor(
        country="FR", browser_name="Googlebot", device_type="bot", is_bot=True
    )


async def test_fields_of_a_visitor_are_unknown_keys_without_a_key() -> None:
    item = CustomEvent(name="a", anonymous_id="anon_1", ip=FRENCH, user_agent=CRAWLER)

    assert await enrich(item) == Enrichment(BERLIN_VISITOR)


async def test_visitors_seen_before_are_not_looked_up_again() -> None:
    geo, user_agents = TableGeo(), TableUserAgents()
    by = Enricher(geo=geo, user_agents=user_agents, salts=DailySalts(salt_of), cache_size=1)

    for address in (GERMAN, GERMAN, FRENCH, GERMAN):
        await enrich(KNOWN, by=by, address=address)

    assert geo.requested == [GERMAN, FRENCH, GERMAN]
    assert user_agents.requested == [CHROME] * 3


async def test_long_user_agent_of_a_client_is_truncated() -> None:
    user_agents = TableUserAgents()
    by = Enricher(geo=TableGeo(), user_agents=user_agents, salts=DailySalts(salt_of))

    await enrich(KNOWN, by=by, user_agent="x" * 5000)

    assert user_agents.requested == ["x" * 2048]


async def test_item_without_an_anonymous_id_gets_an_opaque_one() -> None:
    enrichment = await enrich(KNOWN, UNKNOWN)

    assert re.fullmatch("anon_[0-9a-f]{32}", enrichment.anonymous_id)
    assert enrichment == Enrichment(BERLIN_VISITOR, anonymous_id=enrichment.anonymous_id)


async def test_empty_anonymous_id_counts_as_none() -> None:
    empty = CustomEvent(name="a", anonymous_id="")

    assert (await enrich(empty)).anonymous_id == (await enrich(UNKNOWN)).anonymous_id


async def test_visitor_has_the_same_id_all_day_and_on_every_machine() -> None:
    midnight_ms = NOW_MS - NOW_MS % MILLISECONDS_PER_DAY
    timestamps_ms = (midnight_ms, NOW_MS, midnight_ms + MILLISECONDS_PER_DAY - 1)

    ids = {
        (await enrich(UNKNOWN, now_ms=timestamp_ms)).anonymous_id for timestamp_ms in timestamps_ms
    }

    assert len(ids) == 1


async def test_visitor_has_another_id_elsewhere_and_on_another_day() -> None:
    enrichments = [
        await enrich(UNKNOWN),
        await enrich(UNKNOWN, website_id="blog"),
        await enrich(UNKNOWN, address=FRENCH),
        await enrich(UNKNOWN, user_agent=CRAWLER),
        await enrich(UNKNOWN, now_ms=NOW_MS + MILLISECONDS_PER_DAY),
        await enrich(UNKNOWN, website_id="shop" + GERMAN, address=""),
    ]

    assert len({one.anonymous_id for one in enrichments}) == len(enrichments)


async def enrich_items(*items: CustomEvent, by: Enricher) -> Enrichment:
    """Enrich items without waiting, and again as one would where that is not possible."""
    at_once = by.enrich_from_items_nowait(items)
    assert await by.enrich_from_items(items) == at_once
    assert at_once is not None
    return at_once


async def test_request_with_a_key_is_not_enriched_from_its_sender() -> None:
    assert await enrich_items(KNOWN, UNKNOWN, by=enricher()) == Enrichment()


async def test_request_with_a_key_names_visitors_per_item() -> None:
    items = [
        CustomEvent(name="a", ip=GERMAN, user_agent=CHROME),
        CustomEvent(name="a"),
        CustomEvent(name="a", ip=FRENCH),
        CustomEvent(name="a", user_agent=CHROME),
        CustomEvent(name="a", user_agent=""),
    ]

    assert await enrich_items(*items, by=enricher()) == Enrichment(
        visitors=[
            BERLIN_VISITOR,
            None,
            Visitor(country="FR"),
            Visitor(
                browser_name="Chrome",
                browser_version="126",
                os_name="macOS",
                os_version="10.15",
                device_type="desktop",
            ),
            None,
        ]
    )


async def test_named_visitor_is_never_a_bot() -> None:
    enrichment = await enrich_items(CustomEvent(name="a", user_agent=CRAWLER), by=enricher())

    assert enrichment.visitors == [Visitor(browser_name="Googlebot", device_type="bot")]


async def test_zone_of_a_reported_address_is_not_kept() -> None:
    geo = TableGeo()
    by = Enricher(geo=geo, user_agents=TableUserAgents(), salts=DailySalts(salt_of))
    items = [CustomEvent(name="a", ip=f"{FRENCH}%{zone * 100_000}") for zone in "ab"]

    enrichment = await enrich_items(*items, by=by)

    assert enrichment == Enrichment(visitors=[Visitor(country="FR")] * 2)
    assert geo.requested == [FRENCH]


async def test_one_turn_of_the_loop_looks_up_few_visitors_of_all_requests() -> None:
    geo = TableGeo()
    by = Enricher(geo=geo, user_agents=TableUserAgents(), salts=DailySalts(salt_of))
    requests = [
        [CustomEvent(name="a", ip=f"2001:db8:{number}::{index}") for index in range(1, 50)]
        for number in range(3)
    ]

    assert by.enrich_from_items_nowait(requests[0]) is None
    waiting = asyncio.gather(*(by.enrich_from_items(items) for items in requests))
    looked_up = [len(geo.requested)]
    while not waiting.done():
        await asyncio.sleep(0)
        looked_up.append(len(geo.requested))

    assert looked_up[0] == VISITORS_AT_ONCE
    assert looked_up[-1] == sum(map(len, requests))
    assert max(now - before for before, now in pairwise(looked_up)) <= VISITORS_AT_ONCE
    assert by.enrich_from_items_nowait(requests[2]) == (await waiting)[2]


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "::"])
def test_address_is_accepted(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize(
    "value", ["", "localhost", "192.0.2", "192.0.2.256", " 192.0.2.1", "192.0.2.1:80", 5, True, []]
)
def test_invalid_address_is_a_field_error(value: object) -> None:
    with pytest.raises(ValueError, match=f"^{ADDRESS_ERROR}$"):
        check_address(value)


@pytest.mark.parametrize("value", [5, ["Mozilla"], {}, True, "x" * 2049])
def test_invalid_user_agent_is_a_field_error(value: object) -> None:
    with pytest.raises(ValueError, match=f"^{USER_AGENT_ERROR}$"):
        check_user_agent(value)


def test_visitors_are_checked_where_they_are_named() -> None:
    check_visitors([KNOWN, CustomEvent(name="a", ip=GERMAN, user_agent="x" * 2048)])

    with pytest.raises(ValueError, match=ADDRESS_ERROR):
        check_visitors([KNOWN, CustomEvent(name="a", ip="nowhere")])
    with pytest.raises(ValueError, match=USER_AGENT_ERROR):
        check_visitors([CustomEvent(name="a", user_agent=5)])


class FakeSaltSource:
    """The salts of a directory; it fails while `is_unavailable`."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.threads: set[int] = set()
        self.is_unavailable = False
        self.may_continue = threading.Event()
        self.may_continue.set()

    def salt_of(self, day: str) -> bytes:
        self.requested.append(day)
        self.may_continue.wait(20)
        self.threads.add(threading.get_ident())
        if self.is_unavailable:
            raise OperatorError("the directory is away")
        return day.encode()


async def test_salt_is_destroyed_when_its_day_is_over_without_an_event() -> None:
    salt_source, forgotten, clock = FakeSaltSource(), list[str](), FixedClock(NOW_MS)
    salts = DailySalts(salt_source.salt_of)
    await salts.get(NOW_MS)

    async def expire_once() -> None:
        is_forgotten = threading.Event()

        def forget(before: str) -> None:
            forgotten.append(before)
            is_forgotten.set()

        expiring = asyncio.create_task(expire_salts(salts, forget, clock))
        await asyncio.to_thread(is_forgotten.wait, 30)
        expiring.cancel()

    await expire_once()
    kept = salts.get_nowait(NOW_MS)
    clock.advance(MILLISECONDS_PER_DAY)
    await expire_once()

    assert kept is not None
    assert salts.get_nowait(NOW_MS) is None
    assert forgotten == [utc_day(NOW_MS), utc_day(NOW_MS + MILLISECONDS_PER_DAY)]


async def test_salt_is_fetched_once_a_day_and_off_the_event_loop() -> None:
    salt_source = FakeSaltSource()
    salts = DailySalts(salt_source.salt_of)

    today = await asyncio.gather(*(salts.get(NOW_MS + hour) for hour in range(20)))
    tomorrow = await salts.get(NOW_MS + MILLISECONDS_PER_DAY)

    assert today == [b"2024-05-01"] * 20
    assert tomorrow == b"2024-05-02"
    assert salt_source.requested == ["2024-05-01", "2024-05-02"]
    assert threading.get_ident() not in salt_source.threads


async def test_local_salt_is_used_while_the_directory_is_unavailable() -> None:
    salt_source = FakeSaltSource()
    salt_source.is_unavailable = True
    salts = DailySalts(salt_source.salt_of)

    first = await salts.get(NOW_MS)
    shortly_after = await salts.get(NOW_MS + 4_999)
    later = await salts.get(NOW_MS + 5_000)
    salt_source.is_unavailable = False
    still_waiting = await salts.get(NOW_MS + 9_999)
    back = await salts.get(NOW_MS + 10_000)

    assert len(first) == 32
    assert {first, shortly_after, later, still_waiting} == {first}
    assert back == b"2024-05-01"
    assert salt_source.requested == ["2024-05-01"] * 3


async def test_directory_timeout_bounds_the_wait() -> None:
    salt_source = FakeSaltSource()
    salt_source.may_continue.clear()
    salts = DailySalts(salt_source.salt_of, timeout_s=0.05)

    local_salt = await salts.get(NOW_MS)
    tomorrow = NOW_MS + MILLISECONDS_PER_DAY
    next_local_salt = await salts.get(tomorrow)
    salt_source.may_continue.set()
    back = next_local_salt
    for later_ms in itertools.count(5_000, 5_000):
        back = await salts.get(tomorrow + later_ms)
        if back != next_local_salt:  # a busy machine may take longer than the next timeout
            break

    assert (len(local_salt), len(next_local_salt), local_salt == next_local_salt) == (32, 32, False)
    assert back == b"2024-05-02"
    assert salt_source.requested == ["2024-05-01", "2024-05-02"]


async def test_salt_of_yesterday_is_never_used_again() -> None:
    salt_source = FakeSaltSource()
    salts = DailySalts(salt_source.salt_of)
    yesterday = await salts.get(NOW_MS)
    salt_source.is_unavailable = True

    today = await salts.get(NOW_MS + MILLISECONDS_PER_DAY)

    assert today != yesterday
    assert len(today) == 32
