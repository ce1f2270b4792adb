"""The page for those who do not see it or use no mouse, and in several tabs, in a real Chromium."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from headrace.model.tenancy import Scope
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.sample_shop import send_traffic, shop_traffic
from testing.service import Service, bearer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

YESTERDAY_MS = int((datetime.now(UTC) - timedelta(days=1)).timestamp() * 1000)
GROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT_GROUND = "rgb(245, 246, 248)"
DARK_GROUND = "rgb(14, 19, 25)"


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a public website with days of traffic."""
    website = service.website(public=True)
    send_traffic(
        service.url, service.master.secret, website, shop_traffic(days=5, sessions_a_day=20)
    )
    with opened_page(service, website, tmp_path_factory.mktemp("chromium") / "profile") as page:
        page.set_width(1280)
        yield page


def website_with(page: Page, path: str, *items: Mapping[str, object]) -> Page:
    """Return the tab with a public website of its own that has some items."""
    own = Page(page.tab, page.service, page.service.website(public=True))
    key = bearer(page.service.key("track:events", websites=[own.website]))
    sent = own.service.post(f"{path}?website_id={own.website}", list(items), headers=key)
    assert sent.status_code == 200, sent.text
    return own


def test_colors_that_are_chosen_are_those_of_all_tabs(page: Page) -> None:
    page.open("/")
    page.settle()
    first = page.tab.selected
    second = page.tab.open_another()
    page.open("vitals")
    page.settle()
    page.click("button[title=Colours]")
    page.click("[role=option]", "Dark")
    page.tab.select(first)
    is_dark = page.until(f"{GROUND} === '{DARK_GROUND}'")
    page.click("button[title=Colours]")
    chosen = page.until("document.querySelector('.panel .chosen')?.textContent")
    page.click("[role=option]", "Colours of the system")
    page.tab.select(second)
    is_light = page.until(f"{GROUND} === '{LIGHT_GROUND}'")
    page.tab.close_selected()
    page.tab.select(first)

    assert (is_dark, chosen, is_light) == (True, "Dark", True)


def test_one_sample_and_one_view_are_named_as_one(page: Page) -> None:
    vital = {"timestamp": YESTERDAY_MS, "path": "/", "metricName": "LCP", "metricValue": 3000}
    view = {"timestamp": YESTERDAY_MS, "path": "/", "name": "screen_view", "anonymousId": "v"}
    own = website_with(page, "/vitals", vital)
    own.open("vitals")
    own.settle()
    samples = own.until("document.querySelector('.vital small').textContent")
    own = website_with(page, "/track", view)
    own.open("/", last="7")
    own.settle()
    views = own.until("document.querySelector('.ranked button').title")

    assert samples == "p75 of 1 sample"
    assert views == "Page: /\n1 view, 100%"
    assert own.problems() == []


@pytest.mark.parametrize(
    ("path", "selector", "names", "states"),
    [
        ("/", ".lead .chart-head button", ["Table", "Chart"], [None, None]),
        ("explore", ".query footer button", ["JSON", "Hide JSON"], [None, None]),
        ("live", ".toolbar button", ["Pause", "Pause"], ["false", "true"]),
    ],
    ids=["chart", "query", "stream"],
)
def test_a_button_changes_its_name_or_its_state_and_never_both(
    page: Page, path: str, selector: str, names: list[str], states: list[str | None]
) -> None:
    """A screen reader would say "Chart, pressed" of a table."""
    button = f"document.querySelector('{selector}')"
    said = f"[{button}.textContent, {button}.ariaPressed]"
    page.open(path)
    page.settle()
    before = page.until(said)
    page.click(selector)
    page.settle()

    assert [before, page.until(said)] == [
        [name, state] for name, state in zip(names, states, strict=True)
    ]


def test_the_numbers_of_an_error_say_what_they_count(page: Page) -> None:
    """Beside them, where nobody sees the head: with a screen reader, and on a phone."""
    fault = {"timestamp": YESTERDAY_MS, "path": "/", "message": "Broken", "anonymousId": "v"}
    own = website_with(page, "/errors", *({**fault, "sessionId": f"s{one}"} for one in range(2)))
    own.open("errors")
    own.settle()
    numbers = own.until(
        "[...document.querySelectorAll('.error-groups a .number')].map((one) => one.textContent)"
    )
    head = own.until("document.querySelector('.error-groups .head').ariaHidden")
    width = "[document.querySelector('.error-groups b .unit').getBoundingClientRect().width]"
    on_a_desktop = own.until(width)
    own.set_width(390)
    own.settle()
    on_a_phone = own.until(width)
    own.set_width(1280)

    assert numbers == ["2 errors", "1 visitor", "2 sessions", "0 browsers"]
    assert head == "true"
    assert on_a_desktop == [1]
    assert on_a_phone[0] > 20


def test_arrow_keys_go_down_a_list_that_scrolls_below_the_mouse(page: Page) -> None:
    page.open("/", last="7")
    page.settle()
    page.click("button[title='Time zone']")
    left, top = page.until(
        "((one) => one && [one.left + 40, one.top + 8])"
        "(document.querySelectorAll('.panel [role=option]')[4].getBoundingClientRect())"
    )
    at = "[...document.querySelectorAll('.panel li')].findIndex((e) => e.ariaSelected === 'true')"
    for offset in (0, 1):
        where = {"x": left + offset, "y": top}
        page.tab.command("Input.dispatchMouseEvent", type="mouseMoved", **where)
    page.until(f"{at} === 4")
    key = {"key": "ArrowDown", "code": "ArrowDown", "windowsVirtualKeyCode": 40}
    for _ in range(20):
        page.tab.command("Input.dispatchKeyEvent", type="keyDown", **key)
        page.tab.command("Input.dispatchKeyEvent", type="keyUp", **key)
        page.settle()
    page.tab.run("setTimeout(arguments[0], 300)")  # browsers say later what the mouse is on now

    assert page.until(f"[{at}]") == [24]


def test_a_list_of_web_vitals_is_ordered_by_the_figure_that_is_clicked(page: Page) -> None:
    values = {"/slow": [9000], "/usual": [2000, 2000, 5000], "/fast": [500, 500]}
    own = website_with(
        page,
        "/vitals",
        *(
            {"timestamp": YESTERDAY_MS, "path": path, "metricName": "LCP", "metricValue": value}
            for path, all_values in values.items()
            for value in all_values
        ),
    )
    own.open("vitals")
    own.settle()
    paths = "[...document.querySelectorAll('.answer td button')].map((one) => one.textContent)"
    order = "[...document.querySelectorAll('.answer th')].map((one) => one.ariaSort ?? '')"
    shown = [(own.until(paths), own.until(order))]
    for head in ("Samples", "p75", "p75"):
        own.click(".answer th button", head)
        own.settle()
        shown.append((own.until(paths), own.until(order)))

    assert shown == [
        (["/slow", "/usual", "/fast"], ["", "descending", "", "", "", ""]),
        (["/usual", "/fast", "/slow"], ["", "", "", "", "", "descending"]),
        (["/slow", "/usual", "/fast"], ["", "descending", "", "", "", ""]),
        (["/fast", "/usual", "/slow"], ["", "ascending", "", "", "", ""]),
    ]
    assert own.problems() == []


BACKWARDS = """
[...document.querySelectorAll('.ranked button')].toReversed().map((one) => {
  one.focus();
  const {left, top, height} = one.getBoundingClientRect();
  return one.contains(document.elementFromPoint(left + 9, top + height / 2));
})
"""


def test_what_has_the_focus_is_not_below_the_toolbar(page: Page) -> None:
    page.set_width(1280, height=400)
    page.open("/", last="7")
    page.settle()
    page.until("scrollTo(0, document.body.scrollHeight) || scrollY > 0")
    are_seen = page.until(BACKWARDS)
    page.set_width(1280)

    assert len(are_seen) > 6
    assert all(are_seen)


def test_the_ring_around_a_view_of_the_list_is_seen_whole_on_a_phone(page: Page) -> None:
    """The list scrolls there, and cuts off what is around its entries."""
    page.set_width(390)
    page.open("/", last="7")
    page.settle()
    for kind in ("keyDown", "keyUp"):
        page.tab.command("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab")
    page.until("document.querySelector('.side li > a').focus() || true")
    offset = page.until("getComputedStyle(document.activeElement).outlineOffset")
    page.set_width(1280)

    assert offset == "-2px"


def test_actions_of_a_website_end_where_its_values_do_on_a_phone(page: Page) -> None:
    code = page.service.directory.sessions.create_code(scopes=frozenset(Scope))
    page.tab.open(f"{page.url('admin/websites')}#code={code}")
    page.settle()
    page.set_width(390)
    page.settle()
    rights = page.until(
        "((row) => row && [...row.cells].slice(1).map((cell) => cell.querySelector('bdi'))"
        ".map((one) => [...one.querySelectorAll('button')].at(-1)?.firstChild ?? one.firstChild)"
        ".map((text) => {"
        " const range = document.createRange(); range.selectNodeContents(text);"
        " return Math.round(range.getBoundingClientRect().right); })"
        ".filter((right) => right > 0))"
        "(document.querySelector('.data.stacked tbody tr'))"
    )
    page.set_width(1280)

    assert len(rights) == 2
    assert max(rights) - min(rights) <= 1


def test_single_keys_are_switched_off_and_on_where_they_are_listed(page: Page) -> None:
    """Who dictates would go somewhere by speaking."""
    page.open("/", last="7")
    page.settle()
    page.click("button", "Keys")
    page.click("dialog [type=checkbox]")
    page.click("dialog button", "Close")
    page.press("/", "g", "e", "?")
    page.settle()
    off = page.until("[location.pathname, document.querySelector('dialog[open], .panel')]")
    page.tab.reload()
    page.settle()
    page.press("g", "e")
    page.settle()
    after_a_reload = page.until("location.pathname")
    page.click("button", "Keys")
    page.click("dialog [type=checkbox]")
    page.click("dialog button", "Close")
    page.press("g", "e")

    assert off == ["/app/", None]
    assert after_a_reload == "/app/"
    assert page.until("location.pathname === '/app/explore'")
    assert page.problems() == []
