"""What the page shows while it waits and where something fails, in a real Chromium."""

import pytest

from testing.browsers.marks import NEEDS_CHROMIUM
from testing.browsers.page import Page
from tests.e2e.page.seeded_events import START_MS, VISITORS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    NEEDS_CHROMIUM,
]

UNMARKED = (
    "[...document.querySelectorAll('#content .card:not(.query)')]"
    ".filter((one) => !one.closest('[aria-busy=true]') && !one.querySelector('.skeleton'))"
    ".map((one) => one.innerText)"
)
PENDING_QUERIES = """
const send = window.fetch;
window.fetch = (url, options) =>
  String(url).includes("/v1/query/") ? new Promise(() => {}) : send(url, options);
"""

REFUSED_QUERIES = """
const send = window.fetch;
window.fetch = (url, options) => /\\/query\\/(?!schema)/.test(String(url))
  ? Promise.resolve(new Response("{}", {status: 500})) : send(url, options);
"""


@pytest.mark.parametrize("path", ["/", "explore", "vitals", "errors", "error", "retention"])
def test_values_of_before_are_marked_until_those_of_other_days_are_there(
    page: Page, path: str
) -> None:
    page.open("errors" if path == "error" else path)
    page.settle()
    if path == "error":
        page.click(".error-groups a")
        page.settle()
    before = page.until(f"[{UNMARKED}.length]")
    page.tab.run(f"{PENDING_QUERIES} arguments[0]()")
    if path == "explore":
        page.click("[title='Range of days']")
        page.click("[role=option]", "Last 7 days")
    else:
        page.click("[aria-label='Period before']")
    page.until(f"{UNMARKED}.length === 0")

    assert before != [0]
    assert page.problems() == []


@pytest.mark.parametrize("path", ["vitals", "funnels", "retention"])
def test_a_view_that_was_refused_does_not_look_as_if_it_waited(page: Page, path: str) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=REFUSED_QUERIES)
    page.open(path)
    page.until("document.querySelector('#content .failure')")
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert page.until("[document.querySelectorAll('#content .skeleton').length]") == [0]
    assert page.until(f"{UNMARKED}") == []


def test_nothing_moves_where_a_visitor_wants_no_motion(page: Page) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=PENDING_QUERIES)
    page.open("/")
    page.until("document.querySelector('.skeleton') !== null")
    page.until("document.getAnimations().length > 0")
    page.set_colors("light")
    moving = page.until("[document.getAnimations().length]")
    page.tab.command("Emulation.setEmulatedMedia", features=[])
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert moving == [0]


def test_errors_wait_in_sight(page: Page) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=PENDING_QUERIES)
    page.open("errors")
    page.until("document.querySelector('#content .skeleton')")
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert page.problems() == []


def test_service_that_does_not_answer_is_explained_until_it_does(page: Page) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setBlockedURLs", urls=["*/v1/query/*"])
    page.open("/", last="14")
    alerts = "[...document.querySelectorAll('.failure')]"
    assert page.until(f"{alerts}.some((one) => !one.closest('.card'))")
    explained = page.until("document.querySelector('.failure strong').textContent")
    page.tab.command("Network.setBlockedURLs", urls=[])
    # Unblocking takes effect a little later: the first attempts may still fail.
    is_shown = f"document.querySelector('.figure .value')?.textContent === '{VISITORS}'"
    assert page.until(f"{is_shown} || ({alerts}[0]?.querySelector('button').click(), false)")

    assert explained == "The service does not answer"
    assert page.totals(VISITORS)["Sessions"] == "12"


def test_a_view_without_an_answer_goes_on_by_itself_when_the_network_is_back(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.tab.set_offline(is_offline=True)
    page.click("button[aria-label='Period before']")
    said = page.until("document.querySelector('.failure p')?.textContent")
    page.tab.set_offline(is_offline=False)
    page.until("document.querySelector('.failure') === null")
    page.settle()

    assert "Trying again in" in said
    assert page.problems() == []


def test_view_that_could_not_be_loaded_is_loaded_by_another_try(page: Page) -> None:
    page.open("/")
    page.totals(VISITORS)
    page.tab.command("Network.enable")
    page.tab.command("Network.setBlockedURLs", urls=["*/views/retention.js"])
    page.click("nav a", "Retention")
    said = page.until("document.querySelector('.failure strong')?.textContent")
    page.tab.command("Network.setBlockedURLs", urls=[])
    page.click(".failure button", "Try again")

    assert page.until("document.querySelector('.cohorts') !== null")
    assert said == "The service did not send this view"


UNLOADED = "document.querySelector('.unloaded strong')?.textContent"


@pytest.mark.parametrize("file", ["page.css", "main.js", "views/shell.js", "vendor/preact.js"])
def test_a_page_that_was_loaded_in_part_says_so_and_is_loaded_again(page: Page, file: str) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=True)
    page.tab.command("Network.setBlockedURLs", urls=[f"*/{file}"])
    page.open("/")
    said = page.until(UNLOADED)
    page.tab.command("Network.setBlockedURLs", urls=[])
    page.click(".unloaded button", "Try again")
    page.totals(VISITORS)
    page.tab.command("Network.setCacheDisabled", cacheDisabled=False)

    assert said == "This page did not load completely"
    assert page.until(f"[{UNLOADED} ?? '']") == [""]
    assert page.problems() == []


def test_charts_that_could_not_be_loaded_say_so(page: Page) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=True)
    page.tab.command("Network.setBlockedURLs", urls=["*/vendor/uplot.js"])
    page.open("/")
    said = page.until("document.querySelector('.chart-space p')?.textContent")
    problems = page.problems()
    page.tab.command("Network.setBlockedURLs", urls=[])
    page.click(".chart-space button", "Load the page again")
    page.until("document.querySelector('.chart canvas') !== null")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=False)

    assert said.startswith("The service did not send what draws charts.")
    assert problems == []


def test_first_steps_that_could_not_be_loaded_say_so(page: Page) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=True)
    page.tab.command("Network.setBlockedURLs", urls=["*/views/setup.js"])
    page.open("/", website_id=page.service.website(public=True))
    said = page.until("document.querySelector('.failure strong')?.textContent")
    problems = page.problems()
    page.tab.command("Network.setBlockedURLs", urls=[])
    page.click(".failure button", "Try again")
    page.until("document.querySelector('.setup') !== null")
    page.tab.command("Network.setCacheDisabled", cacheDisabled=False)

    assert said == "The service did not send this view"
    assert problems == []


ANSWERS_WITHOUT_FACTS = """
const send = window.fetch;
window.isBad = true;
window.fetch = async (url, options) => {
  const response = await send(url, options);
  if (!window.isBad || !String(url).includes("/v1/query/custom")) return response;
  const {meta, ...rest} = await response.json();
  return new Response(JSON.stringify(rest), {headers: {"Content-Type": "application/json"}});
};
arguments[0]();
"""
UNDRAWN = "document.querySelector('#content .failure strong')?.textContent"


def test_a_view_that_cannot_be_drawn_says_so_until_it_can(page: Page) -> None:
    page.open("explore")
    page.settle()
    page.tab.run(ANSWERS_WITHOUT_FACTS)
    page.click("button", "Run again")
    said = [page.until(UNDRAWN)]
    page.click(".failure button", "Try again")
    page.until("problems.length === 2")
    said.append(page.until(UNDRAWN))
    page.click("nav a", "Overview")
    page.totals(VISITORS)
    page.tab.back()
    said.append(page.until(UNDRAWN))
    page.tab.run("window.isBad = false; arguments[0]()")
    page.click(".failure button", "Try again")
    page.until("document.querySelector('.answer .truth')")

    assert said == ["This page failed"] * 3
    assert {text.partition(" ")[0] for text in page.problems()} == {"console:"}


BREAK_NUMBERS = """
const highest = Math.max;
window.isBad = true;
Math.max = (...all) => {
  if (window.isBad) throw new Error("no numbers");
  return highest(...all);
};
arguments[0]();
"""


def test_a_view_is_drawn_again_when_one_goes_on_from_what_cannot_be_drawn(page: Page) -> None:
    page.open("/", last="7")
    page.settle()
    page.tab.run(BREAK_NUMBERS)
    page.click("[aria-label='Period before']")
    page.until(UNDRAWN)
    page.tab.run("window.isBad = false; arguments[0]()")
    page.tab.back()

    assert page.totals(VISITORS)["Visitors"] == str(VISITORS)
    assert page.problems() == ["console: Error: no numbers"]


PENDING_CALLS = "window.fetch = () => new Promise(() => {});"


def test_a_page_whose_service_is_slow_shows_that_it_opens(page: Page) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=PENDING_CALLS)
    page.open("/")
    opening = "document.querySelector('main[aria-busy=true]')"
    shown = page.until(f"{opening}.querySelector('.skeleton') && [{opening}.innerText.trim()]")
    said = page.until("document.getElementById('announcement').textContent")
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert (shown, said) == (["Headrace"], "Loading")


def test_values_that_could_not_be_loaded_are_not_said_to_be_none(page: Page) -> None:
    page.open("/")
    page.settle()
    page.tab.command("Network.enable")
    page.tab.command("Network.setBlockedURLs", urls=["*/v1/query/values*"])
    page.click("button[title='Add a filter']")
    page.click(".panel [role=option]", "City")
    none = "document.querySelector('.panel .more')?.textContent"
    said = page.until(f"{none} !== 'Loading' && {none}")
    page.tab.command("Network.setBlockedURLs", urls=[])

    assert said == "No values to choose from: The service does not answer"


def test_a_tag_that_could_not_be_loaded_is_loaded_by_another_try(page: Page) -> None:
    page.tab.command("Network.enable")
    page.tab.command("Network.setBlockedURLs", urls=["*/headrace.json*"])
    page.open("setup")
    explained = page.until("document.querySelector('.snippet .failure strong')?.textContent")
    page.tab.command("Network.setBlockedURLs", urls=[])
    is_there = "document.querySelector('.snippet pre') !== null"
    button = "document.querySelector('.snippet .failure button')"
    assert page.until(f"{is_there} || ({button}?.click(), false)")

    assert explained == "The service does not answer"


BAD_GATEWAY = """
const send = window.fetch;
window.fetch = (url, options) => String(url).includes("/v1/query/") && !window.isBack
  ? Promise.resolve(new Response("<h1>Bad gateway</h1>", {status: 502})) : send(url, options);
"""


def test_a_view_goes_on_by_itself_when_a_proxy_reaches_the_service_again(page: Page) -> None:
    script = page.tab.command("Page.addScriptToEvaluateOnNewDocument", source=BAD_GATEWAY)
    page.open("/", last="14")
    advice = page.until("document.querySelector('.failure p')?.textContent")
    page.until("(window.isBack = true)")
    page.tab.command("Page.removeScriptToEvaluateOnNewDocument", **script)

    assert advice.startswith("What stands between this browser and the service, such as a proxy,")
    assert page.totals(VISITORS)["Sessions"] == "12"


def test_events_before_an_error_that_could_not_be_loaded_are_loaded_by_another_try(
    page: Page,
) -> None:
    own = Page(page.tab, page.service, page.service.website(public=True))
    one = {"timestamp": START_MS, "path": "/", "sessionId": "s", "anonymousId": "v"}
    track, errors = (f"/{kind}?website_id={own.website}" for kind in ("track", "errors"))
    assert own.service.post(track, [{"name": "bought", **one}]).status_code == 200
    assert own.service.post(errors, [{"message": "Broken", **one}]).status_code == 200
    own.open("errors")
    own.click(".error-groups a")
    own.until("document.querySelector('.card summary bdi')")
    own.settle()
    own.tab.command("Network.enable")
    own.tab.command("Network.setBlockedURLs", urls=["*/v1/query/*"])
    own.click(".card summary bdi")
    button = own.until("document.querySelector('.failure button')?.textContent")
    own.tab.command("Network.setBlockedURLs", urls=[])
    own.click(".failure button", unless="!document.querySelector('.failure')")
    trail = own.until("document.querySelector('.trail b')?.textContent")

    assert (button, trail) == ("Try again", "bought")
