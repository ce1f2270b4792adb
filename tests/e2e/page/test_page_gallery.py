"""Every view in light, in dark, on a phone and at 200 % zoom: checked by axe, kept as pictures.

The pictures stand in `build/page`, one folder for each way of looking; git ignores them.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace.model.tenancy import Scope
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import HOSTILE_NAMES, Page, opened_page
from testing.sample_shop import send_traffic, shop_traffic
from testing.service import Service

PROJECT = Path(__file__).parents[3]
PICTURES = PROJECT / "build" / "page"
NPM_TIMEOUT_S = 300

pytestmark = [
    pytest.mark.browser,
    pytest.mark.node,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]

LONG_NAME = "Supercalifragilisticexpialidocious"
LONG_DOMAIN = "a-website-with-a-long-name.of-somebody.example"
EVENTS = {"field": "*", "aggregate": "count", "alias": "events"}
VISITORS = {"field": "anonymous_id", "aggregate": "uniq", "alias": "visitors"}
QUERIES = {
    "lines": {
        "query": {"table": "events", "selects": [EVENTS], "groupBy": ["country"]},
        "lastDays": 30,
        "timezone": "UTC",
        "granularity": "daily",
        "fill": True,
        "top": 5,
        "others": True,
    },
    "bars": {
        "query": {"table": "events", "selects": [EVENTS, VISITORS], "groupBy": ["path"]},
        "lastDays": 30,
        "timezone": "UTC",
        "compare": "previous_period",
    },
    "number": {
        "query": {"table": "events", "selects": [VISITORS, EVENTS]},
        "lastDays": 30,
        "timezone": "UTC",
        "compare": "previous_period",
    },
    "refused": {
        "query": {"table": "events", "selects": [EVENTS], "groupBy": ["cuontry"]},
        "lastDays": 30,
        "timezone": "UTC",
    },
}
MANY_COLUMNS = {
    **QUERIES["bars"],
    "query": {
        "table": "events",
        "selects": [
            EVENTS,
            VISITORS,
            {"field": "time", "aggregate": "latest", "alias": "latest"},
        ],
        "groupBy": ["path", "country"],
    },
}
RETENTION_BY_DAYS: dict[str, Any] = {
    "first": {"filters": []},
    "return": {"filters": []},
    "granularity": "daily",
    "periods": 13,
    "by": "anonymous_id",
}
FUNNEL = {
    "steps": [
        {"name": name, "filters": [{"field": field, "operator": "eq", "value": value}]}
        for name, field, value in (
            ("Saw the coffee", "event_name", "screen_view"),
            ("Put into the cart", "event_name", "add_to_cart"),
            ("Checkout", "path", "/checkout"),
            ("Bought", "event_name", "purchase"),
        )
    ],
    "window": 86_400,
    "by": "anonymous_id",
}


WAYS = (
    ("light", 1280, "light", 1.0),
    ("dark", 1280, "dark", 1.0),
    ("phone", 390, "light", 2.0),
    ("zoom", 640, "light", 2.0),
)
"""Ways of looking: name, width of the window, colours, and pixels of the screen for each one."""


class View(NamedTuple):
    """A view with the parameters of its URL; `click` opens what is to be seen."""

    name: str
    path: str
    parameters: dict[str, str] = {}  # noqa: RUF012 - never changed
    click: str = ""


VIEWS = (
    View("overview", "/"),
    View(
        "overview filtered",
        "/",
        {"filters": json.dumps([{"field": "country", "operator": "eq", "value": "DE"}])},
    ),
    View("overview of nothing", "/", {"from": "2020-01-01", "to": "2020-01-07"}),
    View("ranges open", "/", {}, ".joined .popover > button"),
    View("filter open", "/", {}, "[data-shortcut='/']"),
    *(
        View(f"explore {name}", "explore", {"query": json.dumps(query)})
        for name, query in QUERIES.items()
    ),
    View("explore table", "explore", {"query": json.dumps(QUERIES["bars"]), "metric": "table"}),
    View(
        "explore many columns",
        "explore",
        {"query": json.dumps(MANY_COLUMNS), "metric": "table"},
    ),
    View("explore first", "explore"),
    View("vitals", "vitals"),
    View("errors", "errors"),
    View("error", "errors", {}, ".error-groups a"),
    View("funnels", "funnels", {"query": json.dumps(FUNNEL)}),
    View(
        "funnels by country",
        "funnels",
        {"query": json.dumps({**FUNNEL, "groupBy": "country"})},
    ),
    View("retention", "retention"),
    View("retention by days", "retention", {"query": json.dumps(RETENTION_BY_DAYS)}),
    View("live", "live"),
    View("setup", "setup"),
    *(
        View(f"admin {name}", f"admin/{name}")
        for name in (
            *("storage", "erasures", "websites", "keys"),
            *("organizations", "quarantine", "audit"),
        )
    ),
    View("not found", "nowhere"),
)


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe, from the packages that `clients/page` pins."""
    folder = tmp_path_factory.mktemp("axe")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PROJECT / "clients" / "page" / name, folder)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="module")
def shop(service: Service) -> str:
    """A website with weeks of traffic, and with names that a page must not trust."""
    website = service.directory.create_website(name="Harbour Coffee", domain="shop.example").id
    traffic = shop_traffic(days=61, sessions_a_day=40)
    now_ms = traffic.track[-1]["timestamp"]
    traffic.track.extend(
        {
            "name": name,
            "path": f"/{name}",
            "anonymousId": "v",
            "sessionId": "s",
            "timestamp": now_ms,
        }
        for name in HOSTILE_NAMES
    )
    send_traffic(service.url, service.master.secret, website, traffic)
    return website


@pytest.fixture(scope="module")
def page(service: Service, shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of somebody who may see and change everything."""
    code = service.directory.sessions.create_code(scopes=frozenset(Scope))
    with opened_page(service, shop, tmp_path_factory.mktemp("chromium") / "profile") as page:
        page.tab.open(f"{service.url}/app/#code={code}")
        page.until("document.querySelector('#content') !== null")
        yield page


def show(page: Page, view: View) -> None:
    """Open a view in a wide window and wait until it is drawn."""
    page.set_width(1280)
    page.open(view.path, **view.parameters)
    page.settle()
    if view.click:
        page.click(view.click)
        page.settle()


def look(page: Page, axe: str, name: str) -> dict[str, object]:
    """Take pictures of what is shown, and return by way of looking what is wrong with it."""
    wrong: dict[str, object] = {}
    for way, width, scheme, scale in WAYS:
        page.set_width(width, scale=scale)
        page.set_colors(scheme)
        page.settle()
        page.screenshot(PICTURES / way / f"{name.replace(' ', '-')}.png")
        found = (page.overflow() > 0, page.axe_findings(axe))
        if found != (False, []):
            wrong[way] = found
    return wrong


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_view_has_no_finding_of_axe_and_fits_every_window(page: Page, axe: str, view: View) -> None:
    show(page, view)

    assert look(page, axe, view.name) == {}
    assert page.problems() == []


@pytest.fixture(scope="module")
def many_objects(service: Service) -> None:
    """More websites and keys than fit a window, which has a scroll bar then; one has long names."""
    for _ in range(25):
        service.website()
        service.key("read:data")
    service.directory.create_website(name=LONG_NAME, domain=LONG_DOMAIN)


@pytest.mark.usefixtures("many_objects")
@pytest.mark.parametrize(
    "view",
    [
        *("vitals", "error", "admin websites", "admin keys", "explore table"),
        "admin storage",
        *("explore many columns", "retention", "retention by days", "funnels by country"),
    ],
)
def test_tables_fit_a_phone_without_scrolling(page: Page, view: str) -> None:
    show(page, next(one for one in VIEWS if one.name == view))

    page.set_width(390, height=844)
    page.settle()

    page.until(  # a view may draw other columns only after the window has changed
        "((all) => all.length > 0 && all.every((one) => one.scrollWidth <= one.clientWidth))"
        "([...document.querySelectorAll('.scroll')])"
    )


def test_cohorts_fit_a_phone_whatever_their_shares_are(page: Page) -> None:
    """Widest are shares with two digits before the point, and sizes of five characters."""
    show(page, next(one for one in VIEWS if one.name == "retention by days"))
    page.set_width(390, height=844)
    page.until("document.querySelectorAll('.cohorts thead th').length === 6")
    for cells, text in ((".heat", "88.8%"), ("td.number:not(.heat)", "88.8K")):
        page.until(
            f"[...document.querySelectorAll('.cohorts {cells}')]"
            f".map((one) => (one.textContent = '{text}')).length"
        )

    scroll = "document.querySelector('.scroll')"
    assert page.until(f"[{scroll}.scrollWidth - {scroll}.clientWidth]") == [0]


def test_periods_of_retention_that_are_named_fit_a_narrow_window(page: Page) -> None:
    show(page, next(one for one in VIEWS if one.name == "retention by days"))

    page.set_width(640)
    page.until("document.querySelectorAll('.cohorts thead th').length === 9")

    scroll = "document.querySelector('.scroll')"
    assert page.until(f"[{scroll}.scrollWidth - {scroll}.clientWidth]") == [0]
    assert page.until("document.querySelector('.turn').innerText").split() == [
        *("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", "Days", "+0", "to", "+6"),
        *("of", "+12", "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"),
    ]


def test_later_periods_of_retention_are_turned_to_on_a_phone(page: Page) -> None:
    show(page, next(one for one in VIEWS if one.name == "retention by days"))
    cells = "[...document.querySelectorAll('.cohorts %s')].map((one) => one.textContent)"
    whole = page.until(cells % "thead th"), page.until(cells % "tr.all td")

    page.set_width(390, height=844)
    page.until("document.querySelectorAll('.cohorts thead th').length === 6")
    shown: list[tuple[list[str], list[str]]] = []
    for number, button in enumerate(("", *("Later periods",) * 3)):
        if button:
            page.click(f"[aria-label='{button}']")
        page.until(f"document.querySelector('.turn b').textContent !== '+{4 * number - 4}'")
        shown.append((page.until(cells % "thead th"), page.until(cells % "tr.all td")))
    is_last = page.until("document.querySelector('[aria-label=\\'Later periods\\']').disabled")

    assert is_last
    assert [heads[2:] for heads, _ in shown] == [
        ["Same day", "+1", "+2", "+3"],
        ["+4", "+5", "+6", "+7"],
        ["+8", "+9", "+10", "+11"],
        ["+9", "+10", "+11", "+12"],
    ]
    for heads, together in shown:
        at = whole[0].index(heads[2])
        assert together == [whole[1][0], *whole[1][at - 1 : at + 3]]


def test_sign_in_has_no_finding_of_axe_and_fits_every_window(
    service: Service, axe: str, shop: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with opened_page(service, shop, tmp_path_factory.mktemp("chromium") / "profile") as page:
        page.open("/")
        page.until("document.querySelector('.sign-in')")

        assert look(page, axe, "sign in") == {}
        assert page.problems() == []
