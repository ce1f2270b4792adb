"""Administration on the page, in a real Chromium."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.adapters.data_dir.paths import QUARANTINE
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.model.data_retention import DataRetention
from headrace.model.tenancy import ApiKey, OrganizationId, Scope, WebsiteChange, WebsiteId
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page, opened_page
from testing.service import Service, bearer, running_service, wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

RECEIVED_MS = 1_750_000_000_000
HOSTILE = "<img src=x onerror=hacked=1>"
LINES = "document.querySelectorAll('.lines details').length"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of its own: lists show 200 objects, and the one that tests share may have more."""
    with running_service(tmp_path_factory.mktemp("administration") / "data", workers=2) as own:
        yield own


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of an operator whose session may read and change everything."""
    profile = tmp_path_factory.mktemp("chromium") / "profile"
    with opened_page(service, service.website(), profile) as page:
        scopes = frozenset({Scope.READ_DATA, Scope.MANAGE_DATA, Scope.MANAGE_CONFIG})
        code = service.directory.sessions.create_code(scopes=scopes)
        page.tab.open(f"{service.url}/app/admin/?website_id={page.website}#code={code}")
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
    page.until("[0, 1].every(() => document.querySelector('.lines p button').click() || true)")
    page.until(f"{LINES} === 100")
    pages = 2
    while page.until("[document.querySelectorAll('.lines p button').length]") == [1]:
        page.click(".lines button", "Older changes")
        page.until(f"{LINES} > {50 * pages}")
        pages += 1
    shown = page.until("[...document.querySelectorAll('.lines summary')].map((e) => e.textContent)")
    end = page.until("document.querySelector('.lines').lastElementChild.textContent")
    stored = author.audit_log.lines(limit=1000)

    assert summary.startswith(f"website.update {HOSTILE}")
    assert summary.endswith("by key_of_ann")
    assert cells == [["name", "Name 119", HOSTILE], ["public", "false", "true"]]
    assert first == 50
    assert (len(shown), end) == (len(stored), "These are all changes.")
    assert [one.split()[0] for one in shown] == [line.change.action.value for line in stored]
    assert page.problems() == []


@pytest.mark.parametrize("width", [1280, 390])
def test_lines_of_the_audit_log_do_not_cover_each_other(page: Page, width: int) -> None:
    for name in ("A shop", "A shop with a long name " * 10):
        page.service.directory.create_website(name=name, domain="shop.example")
    page.set_width(width)
    page.open("admin/audit")
    covers = page.until(
        "((all) => all.length > 1 && all.map((one) => one.getBoundingClientRect().bottom + 1 <"
        " one.querySelector('.faint').getBoundingClientRect().bottom))"
        "([...document.querySelectorAll('.lines summary')])"
    )
    page.set_width(1280)

    assert covers == [False] * len(covers)


def test_erasure_counts_before_it_erases_and_leaves_a_receipt(page: Page) -> None:
    shop = another_website(page)
    send(shop, *(event("ann", days_ago=day) for day in (0, 1, 2)), event("bob", days_ago=0))
    shop.open("admin/erasures")
    shop.write(".erase input", "ann")
    shop.click(".erase button", "Count the rows")
    shop.click(".erase button", "Erase 3 rows for good")
    summary = shop.until("document.querySelector('.lines summary')?.textContent")
    facts = shop.until(
        "Object.fromEntries([...document.querySelectorAll('.facts div')].map((one) =>"
        " [one.querySelector('dt').textContent, one.querySelector('dd').textContent]))"
    )

    assert summary.startswith("Visitor (anonymous id) ")
    assert summary.endswith(" · 3 rows")
    assert facts["Rows"] == "3 events"
    assert facts["Subject, as a keyed hash"].startswith("hmac-sha256:")
    assert shop.service.counts(shop.website, "events", "anonymous_id") == {"bob": 1}
    assert shop.problems() == []


def test_a_value_that_is_no_number_says_why_nothing_can_be_counted(page: Page) -> None:
    page.open("admin/erasures")
    page.write(".erase select", "property")
    page.until("document.querySelectorAll('.erase input').length === 2")
    page.write(".erase input[placeholder=Property]", "plan")
    page.write(".erase label:nth-of-type(3) select", "number")
    page.write(".erase input[placeholder=Value]", "5 euros")
    page.until("document.querySelector('.erase .refusal')")
    state = (
        "[document.querySelector('.erase input[placeholder=Value]').ariaInvalid,"
        " document.querySelector('.erase button').disabled]"
    )
    said = page.until("document.querySelector('.erase .refusal').textContent")
    refused = page.until(state)
    page.write(".erase input[placeholder=Value]", "5")
    page.until("!document.querySelector('.erase .refusal')")

    assert (said, refused) == ("This is no number.", ["true", True])
    assert page.until(state) == ["false", False]
    assert page.problems() == []


DELAYED_ERASURES = """
const send = window.fetch;
window.waiting = [];
const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
window.fetch = (url, options) => options?.method === "POST" && String(url).includes("/v1/erasures")
  ? new Promise((go) => waiting.push(async () => (go(await send(url, options)), drawn())))
  : send(url, options);
"""
ANSWER = "waiting.pop()().then(arguments[0])"
BUTTON = "document.querySelector('.erase button').textContent"


def test_rows_that_were_counted_of_one_are_not_those_of_another(page: Page) -> None:
    shop = another_website(page)
    send(shop, event("ann", days_ago=0), event("bob", days_ago=0))
    shop.open("admin/erasures")
    shop.settle()
    shop.tab.run(f"{DELAYED_ERASURES} arguments[0]()")
    shop.write(".erase input", "ann")
    shop.click(".erase button", "Count the rows")
    shop.until("waiting.length === 1")
    doing = shop.until(BUTTON)
    shop.write(".erase input", "bob")
    shop.tab.run(ANSWER)
    of_bob = shop.until(BUTTON)
    shop.click(".erase button", "Count the rows")
    shop.until("waiting.length === 1")
    shop.tab.run(ANSWER)
    shop.until(f"{BUTTON} === 'Erase 1 row for good'")
    shop.until(
        "document.querySelector('.erase button')"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, detail: 2})) || 1"
    )
    shop.click("[title='Website']")
    shop.click("[aria-label='websites'] [role=option]", "")
    shop.until("document.querySelector('.erase input').value === ''")

    assert doing == "Counting …"
    assert of_bob == "Count the rows"
    assert shop.until(BUTTON) == "Count the rows"
    assert shop.until("[waiting.length]") == [0]
    assert shop.service.counts(shop.website, "events", "anonymous_id") == {"ann": 1, "bob": 1}
    assert shop.problems() == []


def press_enter(page: Page, *, is_repeated: bool = False) -> None:
    """Press Enter where the focus is, or repeat it as a key does that is held down."""
    key = {"key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13}
    page.tab.command("Input.dispatchKeyEvent", type="keyDown", autoRepeat=is_repeated, **key)


def test_enter_that_is_repeated_erases_nothing(page: Page) -> None:
    shop = another_website(page)
    send(shop, event("ann", days_ago=0))
    shop.open("admin/erasures")
    shop.write(".erase input", "ann")
    shop.until("document.querySelector('.erase input').focus() || true")
    press_enter(shop)
    shop.until(f"{BUTTON} === 'Erase 1 row for good'")
    for _ in range(3):
        press_enter(shop, is_repeated=True)
    shop.settle()
    offered = shop.until(BUTTON)
    of_repeats = shop.service.counts(shop.website, "events", "anonymous_id")
    press_enter(shop)
    shop.until("document.querySelector('.lines summary') !== null")

    assert (offered, of_repeats) == ("Erase 1 row for good", {"ann": 1})
    assert shop.service.counts(shop.website, "events", "anonymous_id") == {}
    assert shop.problems() == []


def test_what_deleting_means_is_shown_whole(page: Page) -> None:
    page.set_width(1280)
    page.open("admin/websites")
    page.click(".ask button", "Delete")
    is_within = page.until(
        "((text, cell) => text && [text.left >= cell.left - 1, text.right <= cell.right + 1])"
        "(...['.ask:not(.offered)', 'bdi:has(> .ask:not(.offered))'].map((name) =>"
        " document.querySelector(name)?.getBoundingClientRect()))"
    )
    page.click(".ask button", "Cancel")

    assert is_within == [True, True]


def test_a_double_click_on_delete_deletes_nothing(page: Page) -> None:
    """What confirms is where the first button was."""
    website = page.service.directory.create_website(name="Kept", domain="kept.example")
    origins = tuple(f"https://shop-{number}.example" for number in range(20))
    page.service.directory.update_website(website.id, WebsiteChange(origins=origins))
    page.set_width(1280)
    page.open("admin/websites")
    page.settle()
    left, top = page.until(
        "((one) => (one.scrollIntoView({block: 'center'}), one = one.getBoundingClientRect(),"
        " [one.left + one.width / 2, one.top + one.height / 2]))"
        "(document.querySelector(\"[aria-label='Delete Kept']\"))"
    )
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": left, "y": top, "button": "left", "clickCount": count}
            page.tab.command("Input.dispatchMouseEvent", type=kind, **where)
        page.settle()
    shown = page.until("document.querySelector('.ask:not(.offered)')?.textContent ?? 'nothing'")

    assert shown.startswith("Its events are refused from then on.")
    assert website.id in {one.id for one in page.service.directory.websites()}
    assert page.problems() == []


SENT_CHANGES = """
const send = window.fetch;
window.changes = [];
window.fetch = (url, options) => {
  if (options?.method === "PATCH") changes.push(url);
  return send(url, options);
};
arguments[0]();
"""


def test_enter_that_is_repeated_hides_no_rows(page: Page) -> None:
    shop = another_website(page)
    send(shop, event("ann", days_ago=3))
    shop.open("admin/storage")
    shop.settle()
    shop.tab.run(SENT_CHANGES)
    shop.write("[aria-label='Events, days']", "1")
    shop.until("document.querySelector(\"[aria-label='Events, days']\").focus() || true")
    press_enter(shop)
    shop.until("document.querySelector('.keep .danger') !== null")
    for _ in range(3):
        press_enter(shop, is_repeated=True)
    shop.settle()

    assert shop.until("[changes.length]") == [0]
    assert shop.until("document.querySelector('.keep .danger')?.textContent") == (
        "Hide them and keep the rest"
    )
    assert shop.problems() == []


PENDING_CHANGES = """
const send = window.fetch;
window.fetch = (url, options) => options?.method && options.method !== "GET"
  ? new Promise(() => {}) : send(url, options);
arguments[0]();
"""


def test_a_button_says_that_what_it_does_is_going_on(page: Page) -> None:
    page.service.key("read:data")
    page.open("admin/keys")
    page.settle()
    page.tab.run(PENDING_CHANGES)
    page.click("tbody button", "Revoke")
    page.click(".ask button", "Revoke")
    page.until(
        "[...document.querySelectorAll('tbody button')].some((e) => e.innerText === 'Revoke …')"
    )
    page.click("summary", "New key")
    page.click(".choices label", "read:data")
    page.click(".new button", "Create")

    assert page.until("document.querySelector('.new .primary').innerText === 'Create …'")
    assert page.problems() == []


def test_by_keys_alone_one_goes_on_where_a_button_was(page: Page) -> None:
    """Cancel has the focus at first: a key that is held down confirms nothing."""
    page.service.key("read:data")
    button = (
        "((all, text) => all.find((one) => one.textContent.trim() === text))"
        "([...document.querySelectorAll('#content button:enabled')], %r)"
    )
    focused = "document.activeElement.textContent.trim()"

    def press(text: str) -> None:
        page.until(f"{button % text}.focus() || {button % text}.click() || true")

    page.open("admin/keys")
    press("Revoke")
    page.until(f"{focused} === 'Cancel'")
    press("Cancel")
    page.until(f"{focused} === 'Revoke'")
    page.open("admin/storage")
    page.write("[aria-label='Events, days']", "4000")
    press("What would change?")
    page.until(f"{focused} === 'Cancel'")
    press("Cancel")
    page.until(f"{focused} === 'What would change?'")
    page.open("admin/erasures")
    page.write(".erase input", "nobody")
    press("Count the rows")
    page.until("document.activeElement.closest('.erase') && document.activeElement.nodeName")
    page.open("admin/websites")
    press("Change")
    press("Cancel")
    page.until("document.activeElement.id === 'content'")

    assert page.problems() == []


def test_a_form_that_is_sent_twice_creates_one_website(page: Page) -> None:
    page.open("admin/websites")
    page.click("summary", "New website")
    page.write(".new input", "Only one")
    page.until("[0, 1].every(() => document.querySelector('.new form').requestSubmit() || true)")
    page.until("document.querySelector('tbody').textContent.includes('Only one')")
    page.settle()

    names = [website.name for website in page.service.directory.websites()]
    assert names.count("Only one") == 1


def test_days_that_rows_are_kept_are_changed_after_a_look_at_what_that_hides(page: Page) -> None:
    shop = another_website(page)
    send(shop, event("ann", days_ago=0), event("ann", days_ago=40), event("ann", days_ago=50))
    shop.open("admin/storage")
    shop.write("[aria-label='Events, days']", "30")
    shop.click(".keep button", "What would change?")
    effect = shop.until("document.querySelector('.keep [role=status]')?.textContent")
    shop.click(".keep button", "Hide them and keep the rest")
    shop.until(
        "[...document.querySelectorAll('.data td')].some((c) => c.textContent === '30 days')"
    )
    (retention,) = (
        website.retention
        for website in shop.service.directory.websites()
        if website.id == shop.website
    )

    assert effect == "2 events would leave all answers at once, and the disk within a day."
    assert retention == DataRetention(events=30)
    assert shop.service.count(shop.website, "events") == 1
    assert shop.problems() == []


def test_days_that_are_left_to_the_service_are_named_as_unknown(page: Page) -> None:
    shop = another_website(page)
    changed = page.service.http.patch(
        f"{page.service.url}/v1/admin/websites/{shop.website}",
        json={"retention": {"errors": 30}},
        headers=bearer(page.service.key("manage:config")),
        timeout=60,
    )
    assert changed.status_code == 200
    shop.open("admin/storage")
    shop.write("[aria-label='Errors, days']", "")
    shop.click(".keep button", "What would change?")

    assert shop.until("document.querySelector('.keep [role=status]')?.innerText") == (
        "How long errors are kept is then up to the service, which may hide some of them."
    )
    assert shop.until("document.querySelectorAll('.data .cell-bar').length === 0")
    assert shop.problems() == []


def test_the_audit_log_shows_long_values_whole(page: Page) -> None:
    origins = tuple(f"https://shop-{number}.example" for number in range(20))
    author = page.service.directory.acting_as("key_of_ann")
    author.update_website(WebsiteId(page.website), WebsiteChange(origins=origins))
    page.open("admin/audit")
    page.click(".lines summary", "website.update")
    page.until("document.querySelector('.lines details').textContent.includes('shop-19')")
    cut = page.until(
        "[[...document.querySelectorAll('.lines details[open] td bdi')]"
        ".filter((one) => one.scrollWidth > one.clientWidth).length]"
    )
    for width in (390, 1280):
        page.set_width(width)
        page.until(f"innerWidth === {width}")
        assert page.overflow() <= 0

    assert cut == [0]
    assert page.problems() == []


def another_website(page: Page) -> Page:
    """Return the same tab for a website of its own."""
    return Page(page.tab, page.service, page.service.website())


def event(visitor: str, *, days_ago: int) -> dict[str, object]:
    """Return an event of a visitor, some days ago."""
    time = datetime.now(UTC) - timedelta(days=days_ago)
    return {"name": "seen", "anonymousId": visitor, "timestamp": int(time.timestamp() * 1000)}


def send(page: Page, *events: dict[str, object]) -> None:
    """Store events of the page's website."""
    path = f"/track?website_id={page.website}"
    key = bearer(page.service.master)
    assert page.service.post(path, list(events), headers=key).status_code == 200


def test_a_website_is_renamed_and_the_list_of_websites_follows_at_once(page: Page) -> None:
    page.open("admin/websites")
    row = (
        f"[...document.querySelectorAll('tr')].find((e) => e.innerText.includes('{page.website}'))"
    )
    page.until(f"[...{row}.querySelectorAll('button')][0].click() || true")
    focused = page.until("document.activeElement?.closest('.new') && document.activeElement.value")
    page.write(".new input", "Renamed <b>")
    page.click(".new button", "Save")

    assert focused
    assert page.until("document.querySelector('.site').innerText === 'Renamed <b>'")
    assert page.until(f"{row}.innerText.includes('Renamed <b>')")
    key = page.service.key("manage:config")
    path = f"/v1/admin/websites/{page.website}"
    stored = page.service.get(path, headers=bearer(key)).json()["data"]
    assert (stored["name"], stored["domain"]) == ("Renamed <b>", "shop.example")
    assert page.problems() == []


def test_a_key_is_created_with_the_day_on_which_it_expires(page: Page) -> None:
    page.open("admin/keys")
    page.click("summary", "New key")
    page.click(".new button", "Create")
    refused = page.until("document.querySelector('.new [role=alert]')?.textContent")
    page.click(".choices label", "read:data")
    page.write(".new input[type=date]", "2020-02-01")
    page.click(".new button", "Create")
    secret = page.until("document.querySelector('.secret pre')?.textContent")
    states = page.until(
        "((rows) => rows.length && rows)([...document.querySelectorAll('tbody tr')]"
        ".filter((e) => '{0}'.startsWith(e.querySelector('.mono').innerText.slice(0, -1)))"
        ".map((e) => e.cells[3].innerText))".replace("{0}", secret)
    )

    assert refused == 'Invalid request body: missing key "scopes"'
    assert secret.startswith("hr_")
    assert page.until("document.querySelector('.secret button').innerText === 'Copy'")
    assert states[0].startswith("expired ")
    assert page.problems() == []


def test_an_operator_without_a_website_creates_the_first_one(
    service: Service, tmp_path: Path
) -> None:
    code = service.directory.sessions.create_code(
        scopes=frozenset({Scope.READ_DATA, Scope.MANAGE_CONFIG}),
        organization_id=OrganizationId(service.organization("empty")),
    )
    with opened_page(service, "", tmp_path / "profile") as page:
        page.tab.open(f"{service.url}/app/#code={code}")
        page.click(".empty a", "Administration")
        page.click("summary", "New website")
        page.write(".new input", "First")
        page.click(".new button", "Create")

        assert page.until("document.querySelector('.site').innerText === 'First'")
        page.click("nav a", "Overview")
        page.settle()
        assert page.until("document.querySelector('.welcome h2').innerText") == "No events yet"
        assert page.problems() == []


def key_of(page: Page, secret: str) -> ApiKey:
    """Return the stored key of a secret."""
    keys = page.service.directory.keys()
    return next(key for key in keys if secret.startswith(key.prefix))


def test_a_key_is_created_with_its_websites_and_its_home(page: Page) -> None:
    shop = page.service.directory.create_website(name="Shop, main", domain="a.example").id
    blog = page.service.directory.create_website(name="Blog", domain="b.example").id
    page.open("admin/keys")
    page.click("summary", "New key")
    has_home = "document.querySelectorAll('.new [name=home]').length"
    before = page.until(f"[{has_home}]")
    page.click(".choices label", "track:events")
    page.until(f"{has_home} === 1")
    for name in ("Shop, main", "Blog"):
        page.click(".new .chips button", "Add")
        page.click(".new [role=option]", name)
    page.until("document.querySelectorAll('.new .chip').length === 2")
    offered = page.until("[...document.querySelector('.new [name=home]')].map((one) => one.text)")
    page.write(".new [name=home]", blog)
    page.click(".new button", "Create")
    secret = page.until("document.querySelector('.secret pre')?.textContent")
    row = page.until(
        "[...document.querySelectorAll('tbody tr')].map((one) => one.cells)"
        f".find(([cell]) => cell.innerText.startsWith({secret[:9]!r}))?.[2].innerText.split('\\n')"
    )

    assert before == [0]
    assert sorted(offered) == ["Blog", "Shop, main", "none, or the only one that there is"]
    assert row == ["Shop, main, Blog", "home: Blog"]
    key = key_of(page, secret)
    assert (set(key.website_ids), key.default_website_id) == ({shop, blog}, blog)
    sent = page.service.post("/track", {"name": "of a key"}, headers={"x-api-key": secret})
    assert sent.status_code == 200
    assert page.service.counts(blog, "events", "event_name") == {"of a key": 1}
    assert page.problems() == []


def test_enter_in_a_list_without_a_match_creates_no_key(page: Page) -> None:
    page.open("admin/keys")
    page.settle()
    page.tab.run(PENDING_CHANGES)
    page.click("summary", "New key")
    page.click(".choices label", "read:data")
    page.click(".new .chips button", "Add")
    page.write("[aria-label='Search websites']", "nowhere")
    page.until("document.querySelector('.new .more')?.textContent === 'Nothing found'")
    press_enter(page)
    page.settle()

    assert page.until("document.querySelector('.new .primary').textContent") == "Create"
    assert page.until("document.querySelector('.new .more')?.textContent") == "Nothing found"
    assert page.problems() == []


def test_a_home_is_not_sent_for_a_key_that_may_not_send_events(page: Page) -> None:
    page.open("admin/keys")
    page.click("summary", "New key")
    page.click(".choices label", "track:events")
    page.until("document.querySelector('.new [name=home]') !== null")
    page.write(".new [name=home]", page.website)
    page.click(".choices label", "track:events")
    page.click(".choices label", "read:data")
    page.click(".new button", "Create")
    secret = page.until("document.querySelector('.secret pre')?.textContent")

    key = key_of(page, secret)
    assert ({scope.value for scope in key.scopes}, key.default_website_id) == ({"read:data"}, None)
    assert page.problems() == []


def test_websites_and_keys_are_created_in_a_chosen_organization(page: Page) -> None:
    other = page.service.organization("Daughter")
    page.open("admin/websites")
    page.click("summary", "New website")
    page.write(".new input", "Of the daughter")
    page.write(".new [name=organization]", other)
    page.click(".new button", "Create")
    page.until("document.querySelector('tbody').textContent.includes('Of the daughter')")
    page.click("nav a", "Keys")
    page.click("summary", "New key")
    page.click(".choices label", "read:data")
    page.write(".new [name=organization]", other)
    page.click(".new .chips button", "Add")
    offered = page.until(
        "((all) => all.length && all.map((one) => one.innerText))"
        "([...document.querySelectorAll('.new [role=option] span')])"
    )

    (website,) = [
        website
        for website in page.service.directory.websites()
        if website.name == "Of the daughter"
    ]
    page.click("[title='Website']")
    listed = page.until(
        "((all) => all.length && all.map((one) => one.innerText))"
        "([...document.querySelectorAll('[aria-label=websites] [role=option] span')])"
    )
    assert website.organization_id == other
    assert offered == ["Of the daughter"]
    assert "Of the daughter" not in listed  # this session may not read it
    assert page.problems() == []


def test_keys_of_an_organization_that_is_deleted_are_not_listed_any_more(page: Page) -> None:
    other = page.service.organization("Sold")
    key = page.service.key("read:data", organization=other)
    page.open("admin/keys")
    page.until(f"document.querySelector('tbody').textContent.includes('{key.id}')")
    page.click("nav a", "Organizations")
    for name in ("Delete", "Delete"):
        page.click("[aria-label='Delete Sold']", name)
    page.until("!document.querySelector('tbody').textContent.includes('Sold')")
    page.click("nav a", "Keys")
    listed = page.until("document.querySelector('[aria-label=keys] tbody')?.textContent")

    assert key.id not in listed
    assert page.problems() == []


def test_what_is_stored_of_one_website_is_not_shown_for_another(page: Page) -> None:
    shop, other = another_website(page), another_website(page)
    page.service.directory.update_website(WebsiteId(other.website), WebsiteChange(name="Other"))
    send(shop, event("ann", days_ago=0))
    wait_until(lambda: '"Other"' in shop.read_session(), "the session lists the website")
    shop.open("admin/storage")
    shop.settle()
    first = shop.until("document.querySelector('tbody td.number').innerText")
    shop.tab.run("window.fetch = () => new Promise(() => {}); arguments[0]()")
    shop.click("[title='Website']")
    shop.click("[aria-label='websites'] [role=option]", "Other")
    shop.until("document.querySelector('.site').innerText === 'Other'")

    assert first == "1"
    assert shop.until("document.querySelector('#content .skeleton') !== null")
    assert shop.until("[document.querySelectorAll('#content tbody').length]") == [0]
    assert shop.problems() == []
