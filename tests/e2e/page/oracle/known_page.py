"""The page of a website with known traffic: what it shows, and what the oracle answers."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page
from tests.e2e.page.oracle.known_traffic import END, START, ZONE
from tests.oracle import Answer, Stored, evaluate_query

Json = Any
Row = dict[str, Json]
Texts = list[list[str]]

MARKS: Final = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

DAYS: Final = {"startDate": START, "endDate": END, "timezone": ZONE.key}
URL: Final = {"from": START, "to": END, "timezone": ZONE.key}
"""The same range, of a query and of a URL of the page."""

COUNT: Final[Row] = {"field": "*", "aggregate": "count", "alias": "count"}
SPAN: Final[list[Row]] = [
    {"field": "time", "aggregate": "earliest", "alias": "first"},
    {"field": "time", "aggregate": "latest", "alias": "last"},
]
GERMANY: Final[Row] = {"field": "country", "operator": "eq", "value": "DE"}

_TEXTS: Final = """((selector, parts) => {
  const text = (node) => {
    const found = [];
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const isShown = ({parentElement}) => getComputedStyle(parentElement).display !== "none";
    while (walker.nextNode()) {
      if (isShown(walker.currentNode)) found.push(walker.currentNode.data.trim());
    }
    return found.filter(Boolean).join(" ");
  };
  return [...document.querySelectorAll(selector)].map((one) =>
    parts.length ? parts.map((part) => [...one.querySelectorAll(part)].map(text).join(" "))
      : one.cells ? [...one.cells].map(text) : [text(one)]);
})(%s, %s)"""


def unique(field: str, alias: str) -> Row:
    """Return a select of how many values a column has."""
    return {"field": field, "aggregate": "uniq", "alias": alias}


class KnownPage(NamedTuple):
    """The page in a browser, and the rows of the oracle."""

    page: Page
    stored: Stored

    def open(self, path: str, **parameters: str) -> None:
        """Open a view over the range of the traffic and wait until all of it is there."""
        self.page.open(path, **{**URL, **parameters})
        self.page.settle()

    def click(self, selector: str, text: str = "") -> None:
        """Click and wait until all that changes is there."""
        self.page.click(selector, text)
        self.page.settle()

    def texts(self, selector: str, *parts: str) -> Texts:
        """Return the texts of elements: of parts of each, of cells, or of the whole of it."""
        found: Texts = self.page.until(_TEXTS % (json.dumps(selector), json.dumps(parts)))
        return found

    def table(self, selector: str) -> Texts:
        """Return the cells of a table, with its head and its last row."""
        self.page.until(f"document.querySelector({json.dumps(selector + ' tbody tr')})")
        return self.texts(f"{selector} tr")

    def chart(self) -> Texts:
        """Return the chart of a view as its table."""
        button = ".lead .chart-head button"
        if self.page.until(f"document.querySelector('{button}').textContent") == "Table":
            self.click(button)
        return self.table(".lead")

    def answer(self, body: Row) -> Answer:
        """Evaluate a custom query, over the range of the traffic if it has none."""
        return evaluate_query({**DAYS, **body}, self.stored)

    def rows(
        self,
        table: str,
        selects: Sequence[Row],
        by: Sequence[str] = (),
        filters: Sequence[Json] = (),
        **root: Json,
    ) -> list[Row]:
        """Return the rows of a custom query."""
        query: Row = {"table": table, "selects": list(selects)}
        query |= {"groupBy": list(by), "filters": list(filters)}
        return self.answer({"query": query, **root}).rows
