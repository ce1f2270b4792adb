"""The views of the page in a real Firefox, each reached from the one before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.model.tenancy import Scope
from testing.browsers.firefox import FIREFOX, opened_firefox
from testing.browsers.page import HOSTILE_NAMES, Page
from testing.service import Service

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not Path(FIREFOX).exists(), reason="firefox-esr is not installed"),
]

VIEWS = (
    *("Explore", "Web vitals", "Errors", "Funnels", "Retention"),
    *("Live", "Setup", "Administration", "Overview"),
)


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of somebody who may see and change everything, with events of hostile names."""
    website = service.website()
    events = [{"name": name, "path": "/", "anonymousId": "v"} for name in HOSTILE_NAMES]
    assert service.post(f"/track?website_id={website}", events).status_code == 200
    code = service.directory.sessions.create_code(scopes=frozenset(Scope))
    with opened_firefox(tmp_path_factory.mktemp("firefox") / "profile") as tab:
        page = Page(tab, service, website)
        tab.open(f"{service.url}/app/#code={code}")
        page.until("document.querySelector('#content') !== null")
        yield page


def test_every_view_is_complete_and_breaks_no_policy_in_firefox(page: Page) -> None:
    page.open("/")
    page.settle()
    page.watch()
    for view in VIEWS:
        page.click(".side li a", view)
        page.until(f"document.querySelector('h1').textContent === '{view}'")
        page.settle()

    assert page.totals(1)["Sessions"] == "0"
    assert page.until("document.querySelectorAll('#content script, #content img').length === 0")
    assert page.until("typeof hacked === 'undefined'")
    assert page.overflow() <= 0
    assert page.problems() == []
