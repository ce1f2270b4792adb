"""Middleware for WSGI: Django, Flask and others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from headrace_client.client import Headrace
from headrace_client.context import with_fields
from headrace_client.errors import HeadraceClientError
from headrace_client.web.request import Request, RequestOptions, RequestReporter

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_logger = logging.getLogger("headrace_client")


class HeadraceWSGI:
    """Reports requests of an application, and gives their visitor to all items within them.

    An outbox that cannot be written is logged; the request goes on.
    """

    def __init__(
        self, app: WSGIApplication, client: Headrace, options: RequestOptions | None = None
    ) -> None:
        self._app = app
        self._client = client
        self._reporter = RequestReporter(options or RequestOptions())

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request of a server."""
        request = _request(environ)
        if not self._reporter.is_reported(request):
            return self._app(environ, start_response)
        fields = self._reporter.fields(request)

        def start_and_report(
            status: str, headers: list[tuple[str, str]], exc_info: OptExcInfo | None = None, /
        ) -> Callable[[bytes], object]:
            write = start_response(status, headers, exc_info)
            with with_fields(**fields):  # the body may be made after the application returned
                self._report(request, status, headers)
            return write

        with with_fields(**fields):
            try:
                return self._app(environ, start_and_report)
            except Exception as error:
                self._report_error(error)
                raise

    def _report(self, request: Request, status: str, headers: list[tuple[str, str]]) -> None:
        types = [value for name, value in headers if name.lower() == "content-type"]
        events = self._reporter.events(request, int(status[:3]), types[0] if types else "")
        try:
            for name, properties in events:
                self._client.track(name, properties)
        except HeadraceClientError as failure:
            _logger.error("a request is not reported: %s", failure)  # noqa: TRY400

    def _report_error(self, error: Exception) -> None:
        if not self._reporter.options.errors:
            return
        try:
            self._client.errors(error)
        except HeadraceClientError as failure:
            _logger.error("an exception is not reported: %s", failure)  # noqa: TRY400


def _request(environ: WSGIEnvironment) -> Request:
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    headers = {
        name[5:].replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    return Request(
        method=environ["REQUEST_METHOD"],
        path=quote(path.encode("latin-1"), safe="/!$&'()*+,;=:@~"),
        headers=headers,
        address=environ.get("REMOTE_ADDR", ""),
    )
