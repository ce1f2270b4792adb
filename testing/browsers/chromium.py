"""Drives a real Chromium with chromedriver over its HTTP protocol, and serves pages to browsers."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Protocol

import requests

from testing.browsers.http_servers import serving
from testing.servers.ports import free_port
from testing.service import STOP_TIMEOUT_S, wait_until

CHROMIUM = "/usr/bin/chromium"
CHROMEDRIVER = "/usr/bin/chromedriver"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
SCRIPT_TIMEOUT_MS = 90_000
DEVTOOLS = "DevTools"
_SHOWN = "arguments[0]([location.href, window.problems ?? [], document.body?.innerText ?? ''])"
_SHOWN_CHARS = 2_000
_WIRE = {
    "WebDriver:Navigate": ("POST", "url"),
    "WebDriver:Refresh": ("POST", "refresh"),
    "WebDriver:Back": ("POST", "back"),
    "WebDriver:Forward": ("POST", "forward"),
    "WebDriver:GetWindowHandle": ("GET", "window"),
    "WebDriver:NewWindow": ("POST", "window/new"),
    "WebDriver:SwitchToWindow": ("POST", "window"),
    "WebDriver:CloseWindow": ("DELETE", "window"),
    "WebDriver:ExecuteAsyncScript": ("POST", "execute/async"),
    DEVTOOLS: ("POST", "goog/cdp/execute"),
}
"""Method and path of each command below the URL of a session."""


class _Page(BaseHTTPRequestHandler):
    """Responds with a page, empty but for its head, and to /page.js with a script."""

    head = ""
    policy = ""
    script = ""

    def do_GET(self) -> None:
        page = f'<!doctype html><title>A shop</title>{self.head}<button data-track="buy">Hello'
        is_script = self.path == "/page.js"
        body = (self.script if is_script else page).encode()
        media_type = "text/javascript" if is_script else "text/html"
        self.send_response(200)
        if self.policy:
            self.send_header("Content-Security-Policy", self.policy)
        self.send_header("Content-Type", f"{media_type}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        del format, args


@contextmanager
def served_pages(*, head: str = "", policy: str = "", script: str = "") -> Generator[str]:
    """Serve pages from a separate origin and yield that origin.

    `head` is HTML of each page, `policy` its Content-Security-Policy, `script` that of /page.js.
    """
    handler = type("_PageWithHead", (_Page,), {"head": head, "policy": policy, "script": script})
    with serving(handler) as url:
        yield url


class Browser(Protocol):
    """A running browser. Its commands are those of WebDriver, by the names of Marionette."""

    def call(self, command: str, **parameters: Any) -> Any:
        """Run a command and return its result."""
        ...

    def set_offline(self, *, is_offline: bool) -> None:
        """Take the network away from the selected tab at least, or give it back."""
        ...


class Tab:
    """A browser with one tab, or several: what is done is done in the selected one."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    def open(self, page: str) -> None:
        """Load a page and wait until it is loaded."""
        self._browser.call("WebDriver:Navigate", url=page)

    def reload(self) -> None:
        """Load the page again."""
        self._browser.call("WebDriver:Refresh")

    def back(self) -> None:
        """Go to the previous page of the history."""
        self._browser.call("WebDriver:Back")

    def forward(self) -> None:
        """Go to the next page of the history."""
        self._browser.call("WebDriver:Forward")

    @property
    def selected(self) -> str:
        """The handle of the selected tab."""
        return str(self._browser.call("WebDriver:GetWindowHandle"))

    def open_another(self) -> str:
        """Open another tab, select it, and return its handle."""
        handle = str(self._browser.call("WebDriver:NewWindow", type="tab")["handle"])
        self.select(handle)
        return handle

    def select(self, handle: str) -> None:
        """Select a tab."""
        self._browser.call("WebDriver:SwitchToWindow", handle=handle)

    def close_selected(self) -> None:
        """Close the selected tab as a visitor does. Another one must be selected afterwards."""
        self._browser.call("WebDriver:CloseWindow")

    def run(self, script: str, *arguments: Any) -> Any:
        """Run an asynchronous script, which returns its result by calling its last argument.

        The failure of a script that waited in vain has what the page shows as a note.
        """
        try:
            return self._run(script, *arguments)
        except AssertionError as error:
            error.add_note(self._shown())
            raise

    def _run(self, script: str, *arguments: Any) -> Any:
        return self._browser.call(
            "WebDriver:ExecuteAsyncScript", script=script, args=list(arguments)
        )

    def _shown(self) -> str:
        try:
            address, problems, text = self._run(_SHOWN)
        except AssertionError as error:
            return f"The page runs no script: {error}"
        return f"The page {address} has the problems {problems} and shows:\n{text[:_SHOWN_CHARS]}"

    def set_offline(self, *, is_offline: bool) -> None:
        """Take the network away from the selected tab at least, or give it back."""
        self._browser.set_offline(is_offline=is_offline)

    def command(self, name: str, **parameters: Any) -> Any:
        """Send a command of the Chrome DevTools Protocol, which Chromium alone has."""
        return self._browser.call(DEVTOOLS, cmd=name, params=parameters)


class _Chromium:
    """A session of chromedriver."""

    def __init__(self, session_url: str) -> None:
        self._url = session_url

    def call(self, command: str, **parameters: Any) -> Any:
        """Run a command and return its result."""
        method, path = _WIRE[command]
        return _wire(method, f"{self._url}/{path}", parameters if method == "POST" else None)

    def set_offline(self, *, is_offline: bool) -> None:
        """Take the network away from the selected tab, or give it back."""
        self.call(DEVTOOLS, cmd="Network.enable", params={})
        conditions = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.call(
            DEVTOOLS,
            cmd="Network.emulateNetworkConditions",
            params={"offline": is_offline, **conditions},
        )


@contextmanager
def opened_tab(profile: Path, *, user_agent: str | None = None) -> Generator[Tab]:
    """Start a headless Chromium with a new profile; stop it afterwards."""
    flags = [*FLAGS, f"--user-data-dir={profile}"]
    flags += [f"--user-agent={user_agent}"] if user_agent else []
    with _running_driver(profile.with_suffix(".log")) as driver:
        options = {"binary": CHROMIUM, "args": flags}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "timeouts": {"script": SCRIPT_TIMEOUT_MS},
        }
        made = _wire("POST", f"{driver}/session", {"capabilities": {"alwaysMatch": wanted}})
        session_url = f"{driver}/session/{made['sessionId']}"
        try:
            yield Tab(_Chromium(session_url))
        finally:
            _wire("DELETE", session_url)


@contextmanager
def _running_driver(log: Path) -> Generator[str]:
    port = free_port()
    with log.open("wb") as output:
        driver = subprocess.Popen(
            [CHROMEDRIVER, f"--port={port}"], stdout=output, stderr=subprocess.STDOUT
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _is_up(url), "chromedriver answers")
        yield url
    finally:
        driver.terminate()
        driver.wait(STOP_TIMEOUT_S)


def _is_up(url: str) -> bool:
    try:
        return bool(_wire("GET", f"{url}/status")["ready"])
    except requests.ConnectionError:
        return False


def _wire(method: str, url: str, body: Any = None) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        response = session.request(method, url, json=body, timeout=120)
    value = response.json()["value"]
    assert response.status_code == 200, value
    return value
