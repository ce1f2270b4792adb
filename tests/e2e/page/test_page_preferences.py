"""The page in browsers whose user wants larger text, or colours of their own."""

import json
from collections.abc import Iterator

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.sample_shop import send_traffic, shop_traffic
from testing.service import Service

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

PATHS = ["/", "explore", "vitals", "errors", "funnels", "retention", "live", "setup"]
LARGE_TEXT = {"webkit": {"webprefs": {"default_font_size": 32}}}
"""Twice the size that browsers have by default, as their users set it for all pages."""

CHART = """((canvas) => canvas && ({
  font: canvas.getContext('2d').font.split(' ')[0],
  height: canvas.clientHeight,
}))(document.querySelector('.chart canvas'))"""
COLORS = """((of) => ({
  bar: of('.ranked i').borderBottomStyle,
  view: of('[aria-current]').outlineStyle,
  total: of('.figure[aria-pressed=true]').outlineStyle,
  list: of('[role=tab][aria-selected=true]').outlineStyle,
  other: of('.figure[aria-pressed=false]').outlineStyle,
  isLineColored: of('.legend .line').borderTopColor !== of('body').color,
}))((name) => getComputedStyle(document.querySelector(name)))"""


@pytest.fixture(scope="module")
def shop(service: Service) -> str:
    """A public website with days of traffic."""
    website = service.website(public=True)
    traffic = shop_traffic(days=3, sessions_a_day=20)
    send_traffic(service.url, service.master.secret, website, traffic)
    return website


@pytest.fixture(scope="module")
def large(service: Service, shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a browser with large text."""
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    preferences = profile / "Default" / "Preferences"
    preferences.parent.mkdir(parents=True)
    preferences.write_text(json.dumps(LARGE_TEXT))
    with opened_page(service, shop, profile) as page:
        page.set_width(1280)
        yield page


@pytest.fixture(scope="module")
def page(service: Service, shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened_page(service, shop, tmp_path_factory.mktemp("chromium") / "profile") as page:
        page.set_width(1280)
        yield page


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("path", PATHS)
def test_text_is_as_large_as_the_browser_has_it_and_fits(
    large: Page, path: str, width: int
) -> None:
    large.set_width(width)
    large.open(path)
    large.settle()

    assert large.until("getComputedStyle(document.body).fontSize") == "28px"
    assert large.overflow() <= 0
    assert large.problems() == []


def test_the_name_of_the_website_has_room_with_large_text_on_a_phone(large: Page) -> None:
    large.set_width(360)
    large.open("/")
    large.settle()

    name_width, window_width = large.until(
        "((name) => name && [name.clientWidth, innerWidth])(document.querySelector('.site bdi'))"
    )
    assert name_width > window_width / 2


def test_a_chart_and_its_labels_are_as_large_as_the_browser_has_text(large: Page) -> None:
    large.set_width(1280)
    large.open("/")
    large.settle()

    assert large.until(CHART) == {"font": "22px", "height": 520}


def test_bars_and_choices_are_seen_in_colors_of_the_system(page: Page) -> None:
    features = [{"name": "forced-colors", "value": "active"}]
    page.tab.command("Emulation.setEmulatedMedia", features=features)
    page.open("/")
    page.settle()

    assert page.until(COLORS) == {
        "bar": "solid",
        "view": "solid",
        "total": "solid",
        "list": "solid",
        "other": "none",
        "isLineColored": True,
    }
