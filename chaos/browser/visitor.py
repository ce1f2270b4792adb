"""A visitor of the website: tabs that track events, and the ids whose calls returned."""

from random import Random
from typing import Final

from testing.browsers.chromium import Tab
from testing.service import wait_until

MOST_EVENTS: Final = 8
_TRACK: Final = """
const [prefix, count, done] = arguments;
const track = () => {
  if (!window.headrace) return setTimeout(track, 10);
  const ids = [];
  for (let i = 0; i < count; i++) {
    headrace.track("order", { id: `${prefix}-${i}` });
    ids.push(`${prefix}-${i}`);
  }
  done(ids);
};
track();
"""
_UNSENT: Final = """
arguments[0](Object.keys(localStorage).filter((key) => key.startsWith("headrace:")).length);
"""
_FILL: Final = """
const [done] = arguments;
for (let size = 1 << 22; size; size >>= 1) {
  for (let part = 0; ; part++) {
    try { localStorage[`filler-${size}-${part}`] = "x".repeat(size); } catch { break; }
  }
}
done();
"""
_EMPTY: Final = """
const [done] = arguments;
const fillers = Object.keys(localStorage).filter((key) => key.startsWith("filler-"));
for (const key of fillers) delete localStorage[key];
done();
"""
_DRAIN_TIMEOUT_S: Final = 150


class Visitor:
    """A browser on the website. `returned` has the id of every event whose call returned."""

    def __init__(self, tab: Tab, origin: str, random: Random) -> None:
        self.tab = tab
        self.returned: list[str] = []
        self._origin = origin
        self._random = random
        self._calls = 0
        self._pages = 0

    def open_page(self) -> None:
        """Open a page of the website that was not open before."""
        self._pages += 1
        self.tab.open(f"{self._origin}/page-{self._pages}")

    def track(self) -> list[str]:
        """Track some events in the selected tab, and return their ids."""
        self._calls += 1
        count = self._random.randint(1, MOST_EVENTS)
        ids: list[str] = self.tab.run(_TRACK, f"event-{self._calls}", count)
        self.returned += ids
        return ids

    def unsent(self) -> int:
        """Return the number of items in the outbox of all tabs."""
        return int(self.tab.run(_UNSENT))

    def wait_until_all_is_sent(self) -> None:
        """Wait until the outbox is empty. The network must not fail meanwhile."""
        self.open_page()  # a new page sends at once, whatever pause was due
        wait_until(lambda: self.unsent() == 0, "the outbox is empty", timeout_s=_DRAIN_TIMEOUT_S)

    def set_offline(self, *, is_offline: bool) -> None:
        """Take the network away from the selected tab at least, or give it back."""
        self.tab.set_offline(is_offline=is_offline)

    def fill_storage(self) -> None:
        """Leave no room in localStorage, not even for one character."""
        self.tab.run(_FILL)

    def empty_storage(self) -> None:
        """Take away what filled localStorage."""
        self.tab.run(_EMPTY)
