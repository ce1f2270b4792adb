"""Tabs of real browsers: each test of the tracker runs in all of them."""

from collections.abc import Iterator

import pytest

from testing.browsers.chromium import Tab
from testing.browsers.kinds import PACKAGES, Kind, is_installed, opened


@pytest.fixture(scope="module", params=list(Kind))
def browser(request: pytest.FixtureRequest) -> Kind:
    """A browser that is on this machine."""
    kind = Kind(request.param)
    if not is_installed(kind):
        pytest.skip(f"not installed: {PACKAGES[kind]}")
    return kind


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory, browser: Kind) -> Iterator[Tab]:
    """A tab that the tests of a module share."""
    with opened(browser, tmp_path_factory.mktemp(browser) / "profile") as made:
        yield made


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab for tests of what is no different in other browsers."""
    if not is_installed(Kind.CHROMIUM):
        pytest.skip(f"not installed: {PACKAGES[Kind.CHROMIUM]}")
    with opened(Kind.CHROMIUM, tmp_path_factory.mktemp("chromium") / "profile") as made:
        yield made
