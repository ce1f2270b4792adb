"""The live view shows the items and the refused calls that were sent, as they were sent."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from headrace.base.clock import utc_datetime
from testing.browsers.page import Page
from testing.service import Service, bearer
from tests.e2e.page.oracle.known_page import MARKS, URL, KnownPage, Row
from tests.e2e.page.oracle.known_traffic import ZONE, known_traffic
from tests.e2e.page.oracle.shown_values import vital
from tests.oracle.stored import error_row, event_row, vital_row

pytestmark = MARKS

ITEMS_OF_EACH: Final = 25
LISTENING: Final = "document.querySelector('[role=status]').innerText === 'Listening'"
ITEMS: Final = """((count) => {
  const items = [...document.querySelectorAll('ul.live > li')];
  return items.length === count && items.map((one) => ({
    kind: one.className,
    parts: [...one.querySelector('summary').children].map((part) => part.textContent),
    row: JSON.parse(one.querySelector('pre')?.textContent ?? 'null'),
    faults: [...one.querySelectorAll('.refusal li')].map((fault) => fault.textContent),
  }));
})(%d)"""

UNKNOWN: Final = {"id", "received_at", "website_id"}
"""Columns that the service fills in."""

UNCHECKED: Final = {"region", "city", "browser_version", "os_version"}
"""Columns of what an address and a User-Agent become that the oracle does not have."""


def test_live_shows_every_item_that_was_sent_as_its_row(known: KnownPage, service: Service) -> None:
    traffic = known_traffic()
    sent: list[tuple[str, Row, Row]] = []
    for path, make_row in (("track", event_row), ("vitals", vital_row), ("errors", error_row)):
        items: list[tuple[Row, Mapping[str, str]]] = getattr(traffic, path)
        # The last events are those with hostile names.
        sent += [
            (path, item, make_row(item, arrival=0, visitor=client))
            for item, client in items[-ITEMS_OF_EACH:]
        ]

    with _listening(known, service) as page:
        earliest = datetime.now(ZONE)
        for path in ("track", "vitals", "errors"):
            _post(page, path, [item for own, item, _ in sent if own == path])
        shown = page.until(ITEMS % len(sent))
        latest = datetime.now(ZONE)

    assert page.problems() == []
    # The calls are read at different times, so only the order within each of them is known.
    for path, kind in (("track", "event"), ("vitals", "vital"), ("errors", "error")):
        own = [one for one in reversed(shown) if one["parts"][1] == kind]
        rows = [row for sent_to, _, row in sent if sent_to == path]
        assert [one["parts"][2:] for one in own] == [
            [_title(path, row), row["path"]] for row in rows
        ]
        assert [_known(one["row"]) for one in own] == [_shown_row(row) for row in rows]
        assert all(one["kind"] == "event" and one["faults"] == [] for one in own)
    for one in shown:
        _check_clock(one["parts"][0], earliest, latest)
        assert one["row"]["website_id"] == page.website


def test_live_shows_refused_calls_with_the_faults_of_their_items(
    known: KnownPage, service: Service
) -> None:
    is_invalid = "The body breaks a rule, so nothing of the call was stored."
    calls: list[tuple[str, Any, int, list[str]]] = [
        (
            "/track",
            [{"name": "fine"}, {"name": ""}, {"name": "x", "timestamp": -1}],
            400,
            [
                "/track: INVALID_BODY",
                is_invalid,
                "Item 2, name: must be text of 1 to 256 characters",
                "Item 3, timestamp: must not be before 2000-01-01",
            ],
        ),
        (
            "/vitals",
            [{"metricName": "LCP", "path": "/", "timestamp": 1_760_000_000_000}],
            400,
            ["/vitals: INVALID_BODY", is_invalid, "Item 1, metricValue: is required"],
        ),
        (
            "/errors",
            [{}] * 10_001,
            413,
            [
                "/errors: PAYLOAD_TOO_LARGE",
                "The body is larger than the service takes, or has too many items.",
            ],
        ),
    ]

    with _listening(known, service) as page:
        _post(page, "track", [{"name": "accepted"}])  # this worker now knows the website
        shown: list[Row] = page.until(ITEMS % 1)
        for number, (path, body, status, _) in enumerate(calls, 2):
            refused = service.post(
                f"{path}?website_id={page.website}", body, headers=bearer(service.master)
            )
            assert refused.status_code == status, refused.text
            shown = page.until(ITEMS % number)

    assert [
        [one["kind"], one["parts"][1], one["row"], [one["parts"][2], *one["faults"]]]
        for one in reversed(shown[:-1])
    ] == [["refused", "refused", None, texts] for *_, texts in calls]
    assert shown[-1]["parts"][1:3] == ["event", "accepted"]


def _title(path: str, row: Row) -> str:
    if path == "vitals":
        return f"{row['metric_name']} {vital(row['metric_name'], row['metric_value'])}"
    if path == "errors":
        return str(row["message"] or row["error_type"] or "(no message)")
    return str(row["event_name"])


def _shown_row(row: Row) -> Row:
    """Return the columns of a row that have a value."""
    time = utc_datetime(row["time"]).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        name: value
        for name, value in {**row, "time": time}.items()
        if name not in UNKNOWN | UNCHECKED and value not in ("", None, {})
    }


def _known(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in UNKNOWN | UNCHECKED}


def _check_clock(clock: str, earliest: datetime, latest: datetime) -> None:
    """Require a time of day of the time zone of the page."""
    seconds = range(int(earliest.timestamp()), int(latest.timestamp()) + 1)
    assert clock in {f"{datetime.fromtimestamp(second, ZONE):%H:%M:%S}" for second in seconds}


@contextmanager
def _listening(known: KnownPage, service: Service) -> Generator[Page]:
    """Open the live view of a website of its own, and leave it afterwards."""
    page = Page(known.page.tab, service, service.website())
    page.open("live", **URL)
    page.until(LISTENING)
    yield page
    page.open("setup")


def _post(page: Page, path: str, items: list[Row]) -> None:
    headers = bearer(page.service.master)
    response = page.service.post(f"/{path}?website_id={page.website}", items, headers=headers)
    assert response.status_code == 200, response.text
