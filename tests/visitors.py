"""What addresses and User-Agents tell, by tables: stands in for the files of the adapters."""

from collections.abc import Mapping

from headrace.ingest.receive.enrich import Enricher
from headrace.ingest.receive.visitor_salts import VisitorSalts
from headrace.ports.enrichment import Place, Software

GERMAN, FRENCH = "192.0.2.1", "2001:db8::1"
CHROME, CRAWLER = "Mozilla/5.0 Chrome/126", "Googlebot/2.1"

PLACES: Mapping[str, Place] = {
    GERMAN: Place(country="DE", region="Berlin", city="Berlin"),
    FRENCH: Place(country="FR"),
}
SOFTWARE: Mapping[str, Software] = {
    CHROME: Software("Chrome", "126", "macOS", "10.15", "desktop"),
    CRAWLER: Software(browser_name="Googlebot", device_type="bot", is_bot=True),
}


class TableGeo:
    """The `Geo` port over a table; counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def locate(self, address: str) -> Place:
        self.asked.append(address)
        return PLACES.get(address, Place())


class TableUserAgents:
    """The `UserAgents` port over a table; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def parse(self, user_agent: str) -> Software:
        self.asked.append(user_agent)
        return SOFTWARE.get(user_agent, Software())


def salt_of(day: str) -> bytes:
    return day.encode() * 3


def enricher() -> Enricher:
    return Enricher(geo=TableGeo(), user_agents=TableUserAgents(), salts=VisitorSalts(salt_of))
