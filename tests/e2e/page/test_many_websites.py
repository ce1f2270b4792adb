"""The list of websites of somebody who may read hundreds of them."""

import pytest

from headrace.model.tenancy import Scope
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import opened_page
from tests.e2e.conftest import ServiceMaker

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

LIST = "[aria-label='websites']"
MORE = "document.querySelector('.options .more')?.textContent ?? ''"


def test_a_list_says_how_many_it_does_not_show_and_finds_them(
    dedicated_service: ServiceMaker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    service = dedicated_service().start()
    websites = [
        service.directory.create_website(name=f"shop {number}", domain="").id
        for number in range(203)
    ]
    code = service.directory.sessions.create_code(scopes=frozenset({Scope.READ_DATA}))
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, websites[0], profile) as page:
        page.tab.open(f"{service.url}/app/?website_id={websites[0]}#code={code}")
        page.click("[title='Website']")

        assert page.until(f'document.querySelectorAll("{LIST} [role=option]").length') == 200
        assert page.until(MORE) == "3 more: search for them"
        page.write("[aria-label='Search websites']", websites[-1])
        page.click(f"{LIST} [role=option]", "shop 202")
        page.until("document.querySelector('[title=Website]').textContent === 'shop 202'")
        assert websites[-1] in page.until("location.href")
