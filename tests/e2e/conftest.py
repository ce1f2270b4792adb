"""Fixtures that start services: one that tests share, and dedicated ones to kill or configure."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from testing.service import PATIENT_QUERIES, Service, running_service

ServiceMaker = Callable[..., Service]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start services of their own as slow: a start takes seconds."""
    for item in items:
        if "dedicated_service" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that all tests share; each test creates its own websites and keys."""
    data = tmp_path_factory.mktemp("shared") / "data"
    with running_service(data, workers=2, settings=PATIENT_QUERIES) as shared:
        yield shared


@pytest.fixture
def dedicated_service(tmp_path: Path) -> Iterator[ServiceMaker]:
    """Creates services, not yet started, for tests that kill or configure them."""
    made: list[Service] = []

    def make(*, workers: int = 1, settings: Mapping[str, str] | None = None) -> Service:
        data = tmp_path / f"data{len(made)}"
        chosen = {**PATIENT_QUERIES, **(settings or {})}
        made.append(Service(data, workers=workers, settings=chosen))
        return made[-1]

    yield make
    for one in made:
        one.kill()


@pytest.fixture(scope="session")
def unused_websites(service: Service) -> Iterator[str]:
    """Websites without rows, many created at once.

    Workers read all websites again after a change: with a thousand of them, that takes longer than
    most tests.
    """
    return (made for _ in itertools.count() for made in [service.website() for _ in range(50)])


@pytest.fixture
def website(unused_websites: Iterator[str]) -> str:
    """A new private website of the default organization, without allowed origins."""
    return next(unused_websites)


@pytest.fixture(scope="module")
def quiet_website(service: Service) -> str:
    """A website for rejected requests; no test may store anything for it."""
    return service.website()
