"""One website with known traffic, and its page in one browser, for the tests of this folder."""

from collections.abc import Iterator

import pytest

from headrace.model.tenancy import Scope
from testing.browsers.page import opened_page
from testing.service import Service
from tests.e2e.page.oracle.known_page import KnownPage
from tests.e2e.page.oracle.known_traffic import send_traffic


@pytest.fixture(scope="package")
def known(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnownPage]:
    """The page of somebody who reads, in a browser whose own zone is another."""
    website = service.website()
    stored = send_traffic(service, website)
    code = service.directory.sessions.create_code(scopes=frozenset({Scope.READ_DATA}))
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, website, profile) as page:
        page.tab.open(f"{service.url}/app/#code={code}")
        page.until("document.querySelector('#content') !== null")
        yield KnownPage(page, stored)
