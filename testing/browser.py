"""Drives a real Chromium with chromedriver over its HTTP protocol, and serves pages to it."""

import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

from testing.ports import free_port
from testing.service import wait_until

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
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Tab:
    """A browser with one tab, or several: what is done is done in the selected one."""

    def __init__(self, session_url: str) -> None:
        self._url = session_url

    def open(self, page: str) -> None:
        """Load a page and wait until it is loaded."""
        _wire("POST", f"{self._url}/url", {"url": page})

    def reload(self) -> None:
        """Load the page again."""
        _wire("POST", f"{self._url}/refresh", {})

    def back(self) -> None:
        """Go to the previous page of the history."""
        _wire("POST", f"{self._url}/back", {})

    def forward(self) -> None:
        """Go to the next page of the history."""
        _wire("POST", f"{self._url}/forward", {})

    @property
    def selected(self) -> str:
        """The handle of the selected tab."""
        return str(_wire("GET", f"{self._url}/window"))

    def open_another(self) -> str:
        """Open another tab, select it, and return its handle."""
        handle = str(_wire("POST", f"{self._url}/window/new", {"type": "tab"})["handle"])
        self.select(handle)
        return handle

    def select(self, handle: str) -> None:
        """Select a tab."""
        _wire("POST", f"{self._url}/window", {"handle": handle})

    def close_selected(self) -> None:
        """Close the selected tab as a visitor does. Another one must be selected afterwards."""
        _wire("DELETE", f"{self._url}/window")

    def run(self, script: str, *arguments: Any) -> Any:
        """Run an asynchronous script, which returns its result by calling its last argument."""
        body = {"script": script, "args": list(arguments)}
        return _wire("POST", f"{self._url}/execute/async", body)

    def command(self, name: str, **parameters: Any) -> Any:
        """Send a command of the Chrome DevTools Protocol."""
        body = {"cmd": name, "params": parameters}
        return _wire("POST", f"{self._url}/goog/cdp/execute", body)


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
            yield Tab(session_url)
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
        driver.wait(20)


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
