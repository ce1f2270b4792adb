"""Middleware for WSGI: Django, Flask and others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from headrace_client.client import Headrace
from headrace_client.context import with_fields
from headrace_client.errors import HeadraceClientError
from headrace_client.web.request import SERVER_ERROR, Request, RequestOptions, RequestReporter

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
        has_begun = False

        def start_and_report(
            status: str, headers: list[tuple[str, str]], exc_info: OptExcInfo | None = None, /
        ) -> Callable[[bytes], object]:
            nonlocal has_begun
            write = start_response(status, headers, exc_info)
            has_begun = True
            with with_fields(**fields):  # the body may be made after the application returned
                self._report(request, int(status[:3]), headers)
            return write

        within = partial(self._within, fields)
        with within():
            try:
                body = self._app(environ, start_and_report)
            except Exception:
                if not has_begun:
                    self._report(request, SERVER_ERROR, [])
                raise
        return body if _is_complete(body, environ) else _Body(body, within)

    @contextmanager
    def _within(self, fields: Mapping[str, str | None]) -> Generator[None]:
        with with_fields(**fields):
            try:
                yield
            except Exception as error:
                self._report_error(error)
                raise

    def _report(self, request: Request, status: int, headers: list[tuple[str, str]]) -> None:
        types = [value for name, value in headers if name.lower() == "content-type"]
        events = self._reporter.events(request, status, types[0] if types else "")
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


class _Body:
    """A body that is made while it is sent: with the fields of its request."""

    def __init__(
        self, body: Iterable[bytes], within: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._body = body
        self._within = within
        with within():
            self._chunks = iter(body)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._within():
            chunk = next(self._chunks, None)
        if chunk is None:
            raise StopIteration
        return chunk

    def close(self) -> None:
        """Close what has a method for it, as servers do."""
        close = getattr(self._body, "close", None)
        if close is not None:
            with self._within():
                close()


def _is_complete(body: Iterable[bytes], environ: WSGIEnvironment) -> bool:
    """Return whether a body stays as it is: servers count lists and send files specially."""
    wrapper = environ.get("wsgi.file_wrapper")
    return isinstance(body, (list, tuple)) or (
        isinstance(wrapper, type) and isinstance(body, wrapper)
    )


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
