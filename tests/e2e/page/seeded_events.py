"""The events of the website that most tests of the page look at."""

from datetime import UTC, datetime, timedelta

from testing.browsers.page import HOSTILE_NAMES
from testing.service import Json, Service, bearer

START = datetime.now(UTC).replace(hour=0, minute=0, second=1, microsecond=0) - timedelta(days=1)
START_MS = int(START.timestamp() * 1000)
"""The time of the first event that is stored. A day may end while the tests run."""

VISITORS = 12
VIEWS_OF_EACH = 3


def seed(service: Service, website: str) -> None:
    """Store visitors with three views each, half of them from Germany, and hostile names.

    One event is older than the range that the page opens with: the website is not new.
    """
    events: list[Json] = [
        {
            "name": "screen_view",
            "anonymousId": f"v{visitor}",
            "sessionId": f"s{visitor}",
            "timestamp": START_MS + visitor * 60_000 + view * 20_000,
            "ip": "91.12.3.4" if visitor % 2 else "8.8.8.8",
            "properties": {"path": f"/page-{view}", "referrer": "https://example.org/a"},
        }
        for visitor in range(VISITORS)
        for view in range(VIEWS_OF_EACH)
    ]
    events += [
        {"name": name, "anonymousId": "v0", "sessionId": "s0", "timestamp": START_MS + 50_000}
        for name in HOSTILE_NAMES
    ]
    events.append({"name": "older", "anonymousId": "v", "timestamp": START_MS - 45 * 86_400_000})
    key = service.key("track:events", websites=[website])
    sent = service.post(f"/track?website_id={website}", events, headers=bearer(key))
    assert sent.status_code == 200, sent.text
    faults = [
        {"timestamp": START_MS, "path": "/page-1", "message": name, "errorType": name[:128]}
        for name in HOSTILE_NAMES
    ]
    assert service.post(f"/errors?client_id={website}", faults).status_code == 200
    vitals = [
        {"timestamp": START_MS, "path": "/page-1", "metricName": "LCP", "metricValue": value}
        for value in (1000, 2000, 9000)
    ]
    assert service.post(f"/vitals?client_id={website}", vitals).status_code == 200
