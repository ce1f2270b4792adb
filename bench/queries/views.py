"""How long each view of the page takes over a large data set, in a real Chromium.

Run: .venv/bin/python -m bench.queries.views --folder DIR [--events 10000000] [--pictures DIR]

Opens every view of the biggest website of a data set over a month, signed in, with the cache of
results off, and prints when all that it asks for was there and drawn. Exits 1 after an error of the
console, a violation of the policy, or a message of the page that something failed.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.dataset.generate import Dataset, ensure_dataset
from bench.queries.latency import MONTH, NO_CACHE
from bench.queries.overview import sign_in
from testing.browsers.page import Page, opened_page
from testing.service import Service

_RANGE: Final = {"from": MONTH.first, "to": MONTH.last}
_TOP_PAGES: Final[Mapping[str, Any]] = {
    "query": {
        "table": "events",
        "selects": [
            {"field": "*", "aggregate": "count", "alias": "events"},
            {"field": "anonymous_id", "aggregate": "uniq", "alias": "visitors"},
        ],
        "groupBy": ["path"],
    },
    "startDate": MONTH.first,
    "endDate": MONTH.last,
    "compare": "previous_period",
}
_FUNNEL: Final[Mapping[str, Any]] = {
    "steps": [
        {"filters": [{"field": "event_name", "operator": "eq", "value": name}]}
        for name in ("screen_view", "button_click", "add_to_cart", "purchase")
    ],
    "window": 86_400,
    "by": "anonymous_id",
}
_FAILURE: Final = "[...document.querySelectorAll('#content .failure')].map((e) => e.innerText)"


class View(NamedTuple):
    """A view by the path below /app/, with the parameters of its URL."""

    path: str
    parameters: Mapping[str, str] = {}


class Opening(NamedTuple):
    """One opening of a view, and what was wrong with it."""

    view: View
    complete_ms: float
    problems: tuple[str, ...]


VIEWS: Final = (
    View("", _RANGE),
    View("explore", {"query": json.dumps(_TOP_PAGES)}),
    View("vitals", _RANGE),
    View("errors", _RANGE),
    View("funnels", {**_RANGE, "query": json.dumps(_FUNNEL)}),
    View("retention", _RANGE),
    *map(View, ("live", "setup")),
    *(
        View(f"admin/{name}")
        for name in ("storage", "erasures", "websites", "keys", "quarantine", "audit")
    ),
)


def open_views(service: Service, dataset: Dataset, pictures: Path | None) -> Iterator[Opening]:
    """Open each view in turn."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_page(service, dataset.websites[0], Path(folder) / "profile") as page,
    ):
        sign_in(page, dataset.key)
        page.set_width(1280)
        for view in VIEWS:
            yield open_view(page, view)
            if pictures is not None:
                page.screenshot(pictures / f"{view.path.replace('/', '-') or 'overview'}.png")


def open_view(page: Page, view: View) -> Opening:
    """Open a view and wait until it is complete."""
    started = time.perf_counter()
    page.open(view.path, **view.parameters)
    page.settle()
    complete_ms = (time.perf_counter() - started) * 1000
    failures: list[str] = page.tab.run(f"arguments[0]({_FAILURE})")
    return Opening(view, complete_ms, (*page.problems(), *failures))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where data sets are kept")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of each view")
    options = parser.parse_args()
    dataset = ensure_dataset(options.folder, events=options.events)
    service = Service(Path(dataset.data), settings=NO_CACHE)
    service.start()
    has_problems = False
    try:
        for opening in open_views(service, dataset, options.pictures):
            print(f"/app/{opening.view.path:20}{opening.complete_ms:8.0f} ms", flush=True)
            for problem in opening.problems:
                has_problems = True
                print(f"    {problem}", flush=True)
    finally:
        service.stop()
    return 1 if has_problems else 0


if __name__ == "__main__":
    sys.exit(main())
