"""The files of the guide for Next.js, in a real site that a real browser visits."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from testing.browsers.chromium import Tab
from testing.browsers.kinds import Kind
from testing.servers.ports import free_port
from testing.service import PATIENT_QUERIES, Service, wait_until
from tests.docs.guides import blocks
from tests.e2e.tracker.pages import LOADED, SECOND_FILE_LOADED, run
from tests.e2e.tracker.test_components import run_program
from tests.e2e.tracker.test_tracker import NAMES

pytestmark = [pytest.mark.browser, pytest.mark.node, pytest.mark.slow]

GUIDE = "nextjs.md"
PROJECT = Path(__file__).with_name("next")
CLIENT = Path(__file__).parents[3] / "clients" / "node"
STOP_TIMEOUT_S = 30
FOLDERS = {"app/layout.jsx": "app/(shop)/layout.jsx", "app/error.jsx": "app/(shop)/error.jsx"}
"""The site has two root layouts, that of the guide and one with the component of the SDK."""


class Shop(NamedTuple):
    """A site, and the service and website to which it sends."""

    url: str
    service: Service
    website: str

    def rows(self, *columns: str, **values: str) -> list[tuple[object, ...]]:
        """Return these columns of the events that have these values."""
        rows = self.service.rows(self.website, "events", [*values, *columns])
        found = [row for row in rows if all(row[name] == values[name] for name in values)]
        return sorted((tuple(row[name] for name in columns) for row in found), key=str)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The site, built and started as in production, in front of a service that trusts it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("next")
    settings = {**PATIENT_QUERIES, "HEADRACE_TRUSTED_PROXIES": "127.0.0.1"}
    service = Service(folder / "data", settings=settings)
    project = folder / "project"
    port = free_port()
    try:
        service.start()
        website = service.website()
        write_project(project, service, website)
        environment = {
            **os.environ,
            "NEXT_TELEMETRY_DISABLED": "1",
            "HEADRACE_URL": service.url,
            "HEADRACE_WEBSITE_ID": website,
            "TRACKING_KEY": service.key("track:events", websites=[website]).secret,
        }
        program = str(project / "node_modules" / ".bin" / "next")
        run_program([program, "build"], project, environment)
        command = [program, "start", "--hostname", "127.0.0.1", "--port", str(port)]
        site = subprocess.Popen(command, cwd=project, env=environment)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until(lambda: is_up(f"{url}/stats/headrace.js"), "the site serves the tracker")
            yield Shop(url, service, website)
        finally:
            site.terminate()
            site.wait(STOP_TIMEOUT_S)
    finally:
        service.kill()
        shutil.rmtree(project, ignore_errors=True)  # 400 MB, which pytest would keep


def write_project(project: Path, service: Service, website: str) -> None:
    """Install the packages and the client, and write the files of the guide."""
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("node_modules"))
    run_program(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], project)
    client = project / "node_modules" / "@headrace" / "node"
    shutil.copytree(CLIENT / "src", client / "src")
    shutil.copy(CLIENT / "package.json", client)
    for block in [*blocks(GUIDE, "js"), *blocks(GUIDE, "jsx")]:
        name, _, code = block.removeprefix("// ").partition("\n")
        file = project / FOLDERS.get(name, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        code = code.replace("https://events.example.com", service.url)
        file.write_text(code.replace("web_...", website))


def is_up(url: str) -> bool:
    try:
        with Service.session() as session:
            return session.get(url, timeout=20).status_code == 200
    except requests.ConnectionError:
        return False


def test_navigations_clicks_and_events_of_components_and_actions_are_stored_once(
    shop: Shop, tab: Tab, browser: Kind
) -> None:
    name = NAMES[browser]
    tab.open(f"{shop.url}/")
    tab.run(SECOND_FILE_LOADED)
    run(tab, "document.querySelector('a').click()")
    wait_until(lambda: has_text(tab, "button", "Order"), "the product is shown")
    run(tab, "document.querySelector('button').click()")
    wait_until(lambda: has_text(tab, "button", "Thank you"), "the order is placed")
    session = str(tab.run("arguments[0](sessionStorage.did_session)"))
    tab.back()
    wait_until(lambda: has_text(tab, "h1", "Lamps"), "the first page is shown")
    wait_until(lambda: len(shop.rows(session_id=session)) >= 8, "the events are stored")
    tab.open("about:blank")
    tab.open(f"{shop.url}/")  # sends what the page that was left could not send
    wait_until(lambda: len(shop.rows(session_id=session)) >= 10, "the last exit is stored")

    columns = ["path", "event_name", "title", "referrer", "properties.product", "browser_name"]
    assert shop.rows(*columns, session_id=session) == [
        ("", "order_placed", "", "", "lamp", name),
        ("/", "page_exit", "", "", None, name),
        ("/", "page_exit", "", "", None, name),
        ("/", "product_chosen", "", "", "lamp", name),
        ("/", "screen_view", "Lamps", "", None, name),
        ("/", "screen_view", "Lamps", "", None, name),
        ("/", "screen_view", "Lamps", "", None, name),
        ("/products/lamp", "page_exit", "", "", None, name),
        ("/products/lamp", "product_shown", "", "", "lamp", name),
        ("/products/lamp", "screen_view", "The lamp", "", None, name),
    ]


def has_text(tab: Tab, selector: str, text: str) -> bool:
    script = "arguments[2](document.querySelector(arguments[0])?.textContent === arguments[1])"
    return bool(tab.run(script, selector, text))


def test_event_of_a_component_waits_for_the_tracker(shop: Shop, chromium: Tab) -> None:
    chromium.open(f"{shop.url}/products/chair")
    chromium.run(LOADED)
    wait_until(lambda: len(shop.rows(path="/products/chair")) >= 2, "the events are stored")
    assert shop.rows("event_name", "title", path="/products/chair") == [
        ("product_shown", ""),
        ("screen_view", "The chair"),
    ]


def test_webhook_that_is_delivered_twice_is_one_event(shop: Shop) -> None:
    for _ in range(2):
        with Service.session() as session:
            payment = {"id": 7, "amount": 49.5}
            reply = session.post(f"{shop.url}/webhooks/payment", json=payment, timeout=20)
        assert (reply.status_code, reply.json()) == (200, {"received": True})
    with Service.session() as session:
        session.post(f"{shop.url}/webhooks/payment", json={"id": 8, "amount": 1}, timeout=20)
    wait_until(lambda: len(shop.rows(event_name="payment_received")) >= 2, "both are stored")
    assert shop.rows("value", event_name="payment_received") == [(1,), (49.5,)]


def test_errors_of_server_and_components_are_stored(shop: Shop, chromium: Tab) -> None:
    chromium.open(f"{shop.url}/stock?product=lamp")
    wait_until(lambda: has_text(chromium, "p", "This did not work."), "the boundary is shown")
    chromium.open(f"{shop.url}/broken")
    chromium.run(SECOND_FILE_LOADED)
    run(chromium, "document.querySelector('button').click()")
    wait_until(lambda: has_text(chromium, "p", "This did not work."), "the boundary is shown")
    wait_until(lambda: shop.service.count(shop.website, "errors") >= 2, "the errors are stored")
    chromium.open("about:blank")
    wait_until(lambda: len(shop.rows(path="/stock")) >= 2, "the view and the exit are stored")

    assert shop.rows("event_name", path="/stock") == [("page_exit",), ("screen_view",)]
    rows = shop.service.rows(shop.website, "errors", ["path", "message", "error_type"])
    assert sorted(tuple(row.values()) for row in rows) == [
        ("/broken", "Uncaught TypeError: no cart", "TypeError"),
        ("/stock", "no stock of lamp", "RangeError"),
    ]


def test_component_of_the_sdk_sends_to_the_address_of_the_site(shop: Shop, chromium: Tab) -> None:
    chromium.open(f"{shop.url}/sdk")
    chromium.run(LOADED)
    wait_until(lambda: len(shop.rows(path="/sdk")) >= 3, "the events are stored")
    columns = ["event_name", "profile_id", "properties.plan", "title"]
    assert shop.rows(*columns, path="/sdk") == [
        ("identify", "account-7", None, ""),
        ("screen_view", "", None, "With the SDK"),
        ("signup", "account-7", "pro", ""),
    ]


def test_rewrite_passes_addresses_of_visitors_on_and_nothing_but_the_tracker(shop: Shop) -> None:
    for address in ("203.0.113.1", "203.0.113.2", "203.0.113.2"):
        with Service.session() as session:
            reply = session.post(
                f"{shop.url}/stats/batch?client_id={shop.website}",
                json=[{"name": "addressed"}],
                headers={"X-Forwarded-For": address, "User-Agent": "Mozilla/5.0 Firefox/153.0"},
                timeout=20,
            )
        assert reply.status_code == 200, reply.text
    visitors = [visitor for (visitor,) in shop.rows("anonymous_id", event_name="addressed")]
    assert (len(visitors), len(set(visitors))) == (3, 2)
    with Service.session() as session:
        others = [f"{shop.url}/stats/{path}" for path in ("app/", "metrics", "v1/schema", "track")]
        refused = [session.get(url, timeout=20).status_code for url in others]
    assert refused == [404, 404, 404, 404]
