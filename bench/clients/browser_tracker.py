"""Measures what the tracker costs a page in each interaction.

Run: .venv/bin/python -m bench.clients.browser_tracker [--rounds N] [--clicks N]

Two pages that are alike, one with the tracker and one without, get the same clicks on a button with
`data-track`; each click with the tracker is an event in the outbox, which is sent meanwhile. A
figure is the CPU time of the main thread of the page (all tasks, or scripts alone) for one click,
as Chromium counts it. Values are medians of interleaved rounds.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from testing.browsers.chromium import Tab, served_pages
from testing.browsers.kinds import Kind, opened
from testing.service import Service

CLICKS = 200
_READY = """
const [done] = arguments;
const isReady = () => document.readyState === "complete";
const wait = () => (isReady() ? setTimeout(done, 1000) : setTimeout(wait, 20));
wait();
"""
_CLICK = """
const [clicks, done] = arguments;
const button = document.querySelector("button");
let left = clicks;
const click = () => {
  button.click();
  --left ? setTimeout(click, 5) : setTimeout(done, 1000);
};
click();
"""


class PageCost(NamedTuple):
    """CPU time of the main thread for one click, in microseconds."""

    tasks_us: float
    scripts_us: float


def measure(tab: Tab, page: str, clicks: int) -> PageCost:
    """Click on a page, and return what one click costs."""
    tab.open(page)
    tab.run(_READY)
    before = _metrics(tab)
    tab.run(_CLICK, clicks)
    after = _metrics(tab)
    tasks_s, scripts_s = (after[name] - before[name] for name in ("TaskDuration", "ScriptDuration"))
    return PageCost(tasks_s * 1e6 / clicks, scripts_s * 1e6 / clicks)


def _metrics(tab: Tab) -> dict[str, float]:
    metrics = tab.command("Performance.getMetrics")["metrics"]
    return {metric["name"]: metric["value"] for metric in metrics}


def run(work: Path, *, rounds: int, clicks: int) -> dict[str, PageCost]:
    """Return the medians of the page with the tracker and of the one without."""
    service = Service(work / "data")
    try:
        service.start()
        head = (
            f'<script defer src="{service.url}/headrace.js" data-client-id="{service.website()}">'
        )
        with (
            served_pages(head=head + "</script>") as tracked,
            served_pages() as plain,
            opened(Kind.CHROMIUM, work / "profile") as tab,
        ):
            tab.command("Performance.enable", timeDomain="threadTicks")
            costs: dict[str, list[PageCost]] = {"without": [], "with": []}
            for _ in range(rounds):
                costs["without"].append(measure(tab, plain, clicks))
                costs["with"].append(measure(tab, tracked, clicks))
    finally:
        service.kill()
    return {
        name: PageCost(*(median(values) for values in zip(*measured, strict=True)))
        for name, measured in costs.items()
    }


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clicks", type=int, default=CLICKS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as work:
        costs = run(Path(work), rounds=arguments.rounds, clicks=arguments.clicks)
    print("| page | CPU of all tasks | CPU of scripts |\n|---|---|---|")
    for name, cost in costs.items():
        print(f"| {name} the tracker | {cost.tasks_us:.0f} µs | {cost.scripts_us:.0f} µs |")


if __name__ == "__main__":
    main()
