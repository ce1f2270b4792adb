"""Table-based locations and User-Agent data: fakes of the adapters that read files."""

from collections.abc import Mapping

from headrace.ingest.receive.enrich import Enricher
from headrace.ingest.receive.visitor_salts import DailySalts
from headrace.ports.enrichment import GeoLocation, UserAgentInfo

GERMAN, FRENCH = "192.0.2.1", "2001:db8::1"
CHROME, CRAWLER = "Mozilla/5.0 Chrome/126", "Googlebot/2.1"

LOCATIONS: Mapping[str, GeoLocation] = {
    GERMAN: GeoLocation(country="DE", region="Berlin", city="Berlin"),
    FRENCH: GeoLocation(country="FR"),
}
SOFTWARE: Mapping[str, UserAgentInfo] = {
    CHROME: UserAgentInfo("Chrome", "126", "macOS", "10.15", "desktop"),
    CRAWLER: UserAgentInfo(browser_name="Googlebot", device_type="bot", is_bot=True),
}


class TableGeo:
    """The `GeoLocator` port over a table; records the requested addresses."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    def locate(self, address: str) -> GeoLocation:
        self.requested.append(address)
        return LOCATIONS.get(address, GeoLocation())


class TableUserAgents:
    """The `UserAgentParser` port over a table; records the requested texts."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    def parse(self, user_agent: str) -> UserAgentInfo:
        self.requested.append(user_agent)
        return SOFTWARE.get(user_agent, UserAgentInfo())


def salt_of(day: str) -> bytes:
    return day.encode() * 3


def enricher() -> Enricher:
    return Enricher(geo=TableGeo(), user_agents=TableUserAgents(), salts=DailySalts(salt_of))
