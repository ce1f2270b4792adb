"""What the crash test of the tracker reads from a service that fails now and then."""

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random
from typing import cast

from chaos.browser.faults import World
from chaos.browser.gate import Gate
from chaos.browser.visitor import Visitor
from testing.browsers.chromium import Browser, Tab
from testing.browsers.http_servers import serving
from testing.service import Service

REPLIES = [(503, 0), (200, 0), (200, 1)]
"""Status, and the number of rows that have the id."""


class _Replies(BaseHTTPRequestHandler):
    """Responds to the queries one after the other."""

    remaining = iter(REPLIES)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, count = next(self.remaining)
        body = json.dumps({"success": status == 200, "data": [{"n": count}]}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        del format, args


def test_event_counts_as_not_stored_yet_while_queries_get_503(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    service = Service(tmp_path / "data")
    random = Random(1)  # noqa: S311 - of a test
    visitor = Visitor(Tab(cast("Browser", None)), "", random)  # it does nothing here
    with serving(_Replies) as service.url:
        world = World(service, "web_1", Gate(service.url), visitor, random)
        assert [world.is_stored("event-1") for _ in REPLIES] == [False, False, True]
    service.kill()
