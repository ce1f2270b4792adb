"""Web vitals are shown as the oracle has them: in cards, over time, and by dimension."""

from typing import Final

import pytest

from tests.e2e.page.oracle import shown_values as shown
from tests.e2e.page.oracle.known_page import COUNT, MARKS, KnownPage, Texts

pytestmark = MARKS

P75: Final = {"field": "metric_value", "aggregate": "p75", "alias": "p75"}
SHARES: Final = [
    {"field": "metric_value", "aggregate": f"{name}_share", "alias": name}
    for name in ("good", "needs_improvement", "poor")
]
VITALS: Final = ("LCP", "INP", "CLS", "FCP", "TTFB", "FPS")
DIMENSIONS: Final = {
    "path": "Pages",
    "device_type": "Devices",
    "country": "Countries",
    "browser_name": "Browsers",
    "os_name": "Systems",
}


def test_cards_of_web_vitals_show_the_values_and_shares_of_the_oracle(known: KnownPage) -> None:
    rows = known.rows("performance", [P75, COUNT, *SHARES], ["metric_name"])
    by_metric = {row["metric_name"]: row for row in rows}

    known.open("vitals")

    cards = known.texts(".vital", ".name b", ".value", ".rating", "small")
    bars = known.page.until(
        "[...document.querySelectorAll('.vital')].map((one) =>"
        " one.querySelector('.shares')?.getAttribute('aria-label') ?? '')"
    )
    assert cards == [
        [
            metric,
            shown.vital(metric, row["p75"]),
            shown.rating(metric, row["p75"]),
            f"p75 of {shown.counted(row['count'], 'sample')}",
        ]
        for metric in VITALS
        for row in [by_metric[metric]]
    ]
    assert bars == [
        f"Good {shown.percent(row['good'])},"
        f" Needs improvement {shown.percent(row['needs_improvement'])},"
        f" Poor {shown.percent(row['poor'])}"
        if metric in shown.LIMITS
        else ""
        for metric in VITALS
        for row in [by_metric[metric]]
    ]


@pytest.mark.parametrize("metric", VITALS)
def test_web_vital_over_time_and_in_lists_is_that_of_the_oracle(
    known: KnownPage, metric: str
) -> None:
    own = [{"field": "metric_name", "operator": "eq", "value": metric}]
    series = known.rows("performance", [P75, COUNT], (), own, granularity="daily", fill=True)

    known.open("vitals", metric="" if metric == "LCP" else metric)

    assert known.chart() == [["Date", "p75", "Samples"]] + [
        [
            shown.bucket(row["date"], "daily"),
            shown.rated_vital(metric, row["p75"]),
            shown.exact(row["count"]),
        ]
        for row in series
    ]
    for column, tab in DIMENSIONS.items():
        known.click(".answer [role=tab]", tab)
        assert known.table(".answer") == _vitals_by(known, metric, column, tab)
    assert known.page.problems() == []


def _vitals_by(known: KnownPage, metric: str, column: str, tab: str) -> Texts:
    own = [{"field": "metric_name", "operator": "eq", "value": metric}]
    most = [{"field": "count", "direction": "desc"}]
    rows = known.rows("performance", [P75, COUNT, *SHARES], [column], own, orderBy=most, limit=100)
    return [[tab, "p75", "Good", "Needs improvement", "Poor", "Samples"]] + [
        [
            shown.group(column, row[column]),
            shown.rated_vital(metric, row["p75"]),
            *(shown.percent(row[name]) for name in ("good", "needs_improvement", "poor")),
            shown.exact(row["count"]),
        ]
        for row in sorted(rows, key=lambda row: row["p75"], reverse=metric != "FPS")
    ]
