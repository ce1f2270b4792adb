"""The page of a website with known events, for the modules of this folder that open no other."""

from collections.abc import Iterator

import pytest

from testing.browsers.page import Page, opened_page
from testing.service import Service
from tests.e2e.page.seeded_events import seed


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    website = service.website(public=True)
    seed(service, website)
    with opened_page(service, website, tmp_path_factory.mktemp("chromium") / "profile") as page:
        yield page
