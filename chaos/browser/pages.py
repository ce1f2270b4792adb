"""The website of the crash test: pages with the tracker, whose files it serves itself.

The tracker must load while the service is killed, as it does from the cache of a visitor.
"""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler

from headrace.http.compression import IDENTITY
from headrace.http.tracker.files import (
    EXTRAS,
    SCRIPT,
    pinned_path,
    read_pinned_files,
    read_tracker_file,
)
from testing.browsers.http_servers import serving


class _Pages(BaseHTTPRequestHandler):
    head = ""

    def do_GET(self) -> None:
        scripts = _scripts()
        body = scripts.get(self.path)
        if body is None:
            page = f"<!doctype html><title>A shop</title>{self.head}<h1>{self.path}</h1>"
            self._reply(page.encode(), "text/html; charset=utf-8")
        else:
            self._reply(body, "text/javascript; charset=utf-8")

    def _reply(self, body: bytes, media_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing."""
        del format, args


@cache
def _scripts() -> dict[str, bytes]:
    extras = {
        f"/{pinned_path(EXTRAS, digest)}": file.bodies[IDENTITY]
        for digest, file in read_pinned_files(EXTRAS).items()
    }
    return {f"/{SCRIPT}": read_tracker_file(SCRIPT).bodies[IDENTITY], **extras}


@contextmanager
def served_shop(website: str, api_url: str, *, keeps_events: bool = True) -> Generator[str]:
    """Serve the pages of a website, and yield their origin.

    Without `keeps_events` the outbox is in memory: the test must then find that events are lost.
    """
    storage = "" if keeps_events else ' data-storage="none"'
    attributes = f'data-client-id="{website}" data-api-url="{api_url}"{storage}'
    head = f'<script defer src="/{SCRIPT}" {attributes}></script>'
    with serving(type("_ShopPages", (_Pages,), {"head": head})) as origin:
        yield origin
