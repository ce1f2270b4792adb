"""Which refused calls are shown to those who watch a website."""

import asyncio

import pytest

from headrace.base.clock import FixedClock
from headrace.base.errors import DirectoryUnavailable, FieldError
from headrace.ingest.receive.refusals import RefusalReporter, RefusedCall
from headrace.model.tenancy import Credentials, TenancySnapshot, WebsiteId
from headrace.ports.live import LiveItem
from tests.contract.http.fakes import (
    FOREIGN_KEY,
    NOW_MS,
    PRIVATE,
    PUBLIC,
    READER_KEY,
    WRITER_KEY,
    FakeTenancySource,
    make_tenancy,
)

CALL = RefusedCall("/track", "INVALID_BODY", (FieldError(3, "name", "is required"),))
BODY = (
    b'{"path":"/track","code":"INVALID_BODY",'
    b'"errors":[{"index":3,"field":"name","message":"is required"}]}'
)
OLDER = TenancySnapshot(revision=0, websites={}, keys={}, websites_by_organization={})


class Published:
    """A `LiveSource` that keeps what is published."""

    def __init__(self) -> None:
        self.items: list[tuple[WebsiteId, LiveItem]] = []

    async def publish(self, website_id: WebsiteId, item: LiveItem) -> None:
        self.items.append((website_id, item))


def reported(
    credentials: Credentials,
    watched: WebsiteId = PRIVATE,
    tenancy: FakeTenancySource | None = None,
) -> list[WebsiteId]:
    """Return the websites at which a refused call is shown while one website is watched."""
    source = Published()

    async def report() -> None:
        reporter = RefusalReporter(
            source,  # type: ignore[arg-type]  # nothing else of it is called
            tenancy=tenancy or FakeTenancySource(make_tenancy()),
            is_watched=lambda website: website == watched,
            clock=FixedClock(NOW_MS),
        )
        reporter.report(credentials, CALL)
        await asyncio.sleep(0)

    asyncio.run(report())
    assert {item for _, item in source.items} <= {LiveItem("refused", BODY)}
    return [website for website, _ in source.items]


@pytest.mark.parametrize(
    ("credentials", "shown"),
    [
        (Credentials(website_id=PRIVATE), True),
        (Credentials(api_key=WRITER_KEY, website_id=PRIVATE), True),
        (Credentials(api_key="hr_unknown", website_id=PRIVATE), False),
        (Credentials(api_key=READER_KEY, website_id=PRIVATE), False),
        (Credentials(api_key=FOREIGN_KEY, website_id=PRIVATE), False),
        (Credentials(website_id="web_nowhere"), False),
        (Credentials(), False),
    ],
    ids=["identifier", "key", "unknown key", "no scope", "another's key", "unknown", "none"],
)
def test_only_a_call_that_may_write_to_the_website_is_shown(
    credentials: Credentials, shown: bool
) -> None:
    assert reported(credentials) == ([PRIVATE] if shown else [])


def test_a_call_is_not_shown_where_nobody_watches_its_website() -> None:
    assert reported(Credentials(website_id=PRIVATE), watched=PUBLIC) == []


@pytest.mark.parametrize("api_key", [None, WRITER_KEY], ids=["identifier", "key"])
def test_a_call_is_shown_that_names_a_website_newer_than_what_the_worker_knows(
    api_key: str | None,
) -> None:
    tenancy = FakeTenancySource(OLDER)
    tenancy.newest = make_tenancy()

    assert reported(Credentials(api_key=api_key, website_id=PRIVATE), tenancy=tenancy) == [PRIVATE]


def test_no_refusal_is_shown_while_a_new_website_cannot_be_looked_up() -> None:
    tenancy = FakeTenancySource(OLDER)
    tenancy.failure = DirectoryUnavailable("away")

    assert reported(Credentials(website_id=PRIVATE), tenancy=tenancy) == []
