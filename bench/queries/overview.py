"""How soon the overview of a website is painted and complete, in a real Chromium.

Run: .venv/bin/python -m bench.queries.overview --folder DIR [--events 10000000] [--runs 9]

Opens the overview of the biggest website of a data set, compared with the period before, each time
over another range of thirty days, so that no kept answer helps; once with an empty cache of the
browser, then with the files of the page in it. Times begin with the navigation and are measured by
the page itself: the first paint, and the moment when all figures, the chart and all cards show.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from bench.dataset.columns import DAYS, FIRST_DAY_MS
from bench.dataset.generate import Dataset, ensure_dataset
from testing.browsers.page import Page, opened_page
from testing.service import Service

RANGE_DAYS: Final = 30
FIRST_DAY: Final = datetime.fromtimestamp(FIRST_DAY_MS / 1000, UTC).date()
WATCH: Final = """
const isComplete = () => document.querySelectorAll('.breakdown .ranked').length === 6
  && document.querySelector('.chart canvas') && !document.querySelector('.skeleton, .stale');
const watch = () => {
  if (isComplete()) requestAnimationFrame(() => { window.completeMs = performance.now(); });
  else setTimeout(watch, 4);
};
watch();
"""
TIMES: Final = """
window.completeMs && {
  paintMs: performance.getEntriesByName('first-paint')[0].startTime,
  completeMs: window.completeMs,
  queriesMs: Math.max(...performance.getEntriesByType('resource')
    .filter((one) => one.name.includes('/v1/query/')).map((one) => one.duration)),
  bytes: performance.getEntriesByType('resource')
    .filter((one) => one.name.includes('/app/')).reduce((sum, one) => sum + one.transferSize, 0),
}
"""


class Opening(NamedTuple):
    """One opening of the overview."""

    paint_ms: float
    complete_ms: float
    slowest_query_ms: float
    transferred_bytes: float


def open_overview(page: Page, number: int) -> Opening:
    """Open the overview over a range that was not opened before."""
    end = FIRST_DAY + timedelta(days=DAYS - 1 - number)
    start = end - timedelta(days=RANGE_DAYS - 1)
    page.open("/", **{"from": start.isoformat(), "to": end.isoformat()})
    times = page.until(TIMES)
    return Opening(times["paintMs"], times["completeMs"], times["queriesMs"], times["bytes"])


def measure(service: Service, dataset: Dataset, runs: int) -> Sequence[Opening]:
    """Return the openings; the browser has no file of the page before the first."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_page(service, dataset.websites[0], Path(folder) / "profile") as page,
    ):
        sign_in(page, dataset.key)
        page.tab.command("Network.clearBrowserCache")
        page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        page.set_width(1280)
        return [open_overview(page, number) for number in range(runs + 1)]


def sign_in(page: Page, key: str) -> None:
    """Give the browser a session of a key."""
    page.tab.open(f"{page.service.url}/app/")
    page.tab.run(
        "const [key, done] = arguments;"
        "fetch('/v1/session', {method: 'POST', headers: {'Content-Type': 'application/json'},"
        " body: JSON.stringify({key})}).then(({status}) => done(status));",
        key,
    )


def describe(name: str, openings: Sequence[Opening]) -> str:
    """Return a line of medians and worst values."""
    paint, complete, query, size = zip(*openings, strict=True)
    return (
        f"{name:28}{len(openings):5}{statistics.median(paint):10.0f}{max(paint):8.0f}"
        f"{statistics.median(complete):12.0f}{max(complete):8.0f}"
        f"{statistics.median(query):12.0f}{max(size) / 1024:10.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where data sets are kept")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    dataset = ensure_dataset(options.folder, events=options.events)
    service = Service(Path(dataset.data))
    service.start()
    try:
        openings = measure(service, dataset, options.runs)
    finally:
        service.stop()
    print(f"{dataset.events} events, {dataset.websites[0]}; times in ms, sizes in KiB")
    print(f"{'':28}{'runs':>5}{'paint':>10}{'worst':>8}{'complete':>12}{'worst':>8}", end="")
    print(f"{'query':>12}{'size':>10}")
    print(describe("empty cache of the browser", openings[:1]))
    print(describe("files of the page kept", openings[1:]))


if __name__ == "__main__":
    main()
