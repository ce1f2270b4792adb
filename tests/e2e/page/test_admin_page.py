"""Quarantine and audit log on the page, in a real Chromium."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.adapters.data_dir.paths import QUARANTINE
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.model.tenancy import Scope, WebsiteChange, WebsiteId
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from testing.browser import CHROMEDRIVER, CHROMIUM, opened_tab
from testing.service import Service
from tests.e2e.page.test_page import WATCH, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (Path(CHROMIUM).exists() and Path(CHROMEDRIVER).exists()),
        reason="chromium and chromium-driver are not installed",
    ),
]

RECEIVED_MS = 1_750_000_000_000
HOSTILE = "<img src=x onerror=hacked=1>"
LINES = "document.querySelectorAll('.lines details').length"


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of an operator whose session may read and change everything."""
    with opened_tab(tmp_path_factory.mktemp("chromium") / "profile") as tab:
        tab.command("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        page = Page(tab, service, service.website())
        scopes = frozenset({Scope.READ_DATA, Scope.MANAGE_CONFIG})
        code = service.directory.sessions.create_code(scopes=scopes)
        tab.open(f"{service.url}/app/admin/?website_id={page.website}#code={code}")
        page.until("document.querySelector('nav[aria-label=Administration]') !== null")
        yield page


def put_entry(page: Page, reason: str, **item: object) -> str:
    """Quarantine an event, as the loader does with one that the store rejects."""
    files = FileQuarantine(page.service.data / QUARANTINE)
    known = set(files.ids())
    whole = {"website_id": page.website, "time_ms": RECEIVED_MS, "received_ms": RECEIVED_MS, **item}
    files.put(
        QuarantineEntry("gone", LogOffset(1, 77), reason, stream="events", index=0, item=whole)
    )
    (entry_id,) = set(files.ids()) - known
    return entry_id


def test_a_quarantined_event_is_shown_with_its_fault_and_retried(page: Page) -> None:
    put_entry(page, f"OverflowError: {HOSTILE}", name="bought")
    page.open("admin/quarantine")
    heading = page.until("document.querySelector('.lines h2')?.textContent")
    page.click(".lines summary", HOSTILE)
    content = page.until("document.querySelector('.lines details pre')?.textContent")
    page.click(".lines button", "Retry")
    note = page.until("document.querySelector('[role=status]')?.textContent")
    page.until("document.querySelector('.empty')?.textContent.includes('empty')")

    assert heading == "Rejected by the store: 1 item"
    assert json.loads(content)["item"]["name"] == "bought"
    assert note == (
        "1 entry handed to the store again. What it rejects once more comes back under a new id."
    )
    assert page.service.counts(page.website, "events", "event_name") == {"bought": 1}
    assert page.problems() == []


def test_a_retry_that_is_refused_says_why_and_leaves_the_entry(page: Page) -> None:
    entry_id = put_entry(page, "It is odd.", name=7)
    page.open("admin/quarantine")
    page.click(".lines summary", "It is odd.")
    page.click(".lines button", "Retry")
    refusal = page.until("document.querySelector('.refusal')?.textContent")
    FileQuarantine(page.service.data / QUARANTINE).remove(entry_id)

    assert refusal.startswith(f"Invalid request body: item: cannot requeue {entry_id}: ")
    assert page.problems() == []


def test_the_audit_log_shows_what_changed_and_leads_to_older_changes(page: Page) -> None:
    author = page.service.directory.acting_as("key_of_ann")
    website_id = WebsiteId(page.website)
    for number in range(120):
        author.update_website(website_id, WebsiteChange(name=f"Name {number}"))
    author.update_website(website_id, WebsiteChange(name=HOSTILE, public=True))
    page.open("admin/audit")
    summary = page.until("document.querySelector('.lines summary')?.textContent")
    page.click(".lines summary", HOSTILE)
    cells = page.until(
        "[...document.querySelector('.lines details').querySelectorAll('tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    first = page.until(LINES)
    page.click(".lines button", "Older changes")
    page.until(f"{LINES} === 100")

    assert summary.startswith(f"website.update {HOSTILE}")
    assert summary.endswith("by key_of_ann")
    assert cells == [["name", "Name 119", HOSTILE], ["public", "false", "true"]]
    assert first == 50
    assert page.problems() == []
