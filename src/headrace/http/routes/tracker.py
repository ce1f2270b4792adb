"""The files of the browser tracker, for pages of any website."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Final

import msgspec

from headrace.base.errors import NotFound
from headrace.http import endpoints
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.request import Handler, Request
from headrace.http.responses import JSON_HEADER, Header, Response
from headrace.http.routes.encoded_files import respond_with_file
from headrace.http.tracker.files import (
    DETAILS,
    EXTRAS,
    SCRIPT,
    TrackerFile,
    pinned_path,
    pinned_script,
    read_pinned_files,
    read_tracker_file,
)

SCRIPT_TYPE: Final = "text/javascript; charset=utf-8"
MAP_TYPE: Final = "application/json"
_ANY_PAGE: Final[tuple[Header, ...]] = (
    (b"access-control-allow-origin", b"*"),
    (b"cross-origin-resource-policy", b"cross-origin"),
)
"""A page that demands `crossorigin` or isolates itself may load the files, too."""

_FOR_AN_HOUR: Final = (b"cache-control", b"public, max-age=3600, stale-while-revalidate=86400")
_FOR_EVER: Final = (b"cache-control", b"public, max-age=31536000, immutable")


def tracker_paths(tracker_path: str) -> Mapping[EndpointSpec, str]:
    """Return where the files are when the script is at `tracker_path`: all in one folder."""
    folder = tracker_path.rpartition("/")[0]
    extras, details = f"{folder}/{EXTRAS}", f"{folder}/{DETAILS}"
    return {
        endpoints.TRACKER: tracker_path,
        endpoints.TRACKER_MAP: f"{tracker_path}.map",
        endpoints.TRACKER_PINNED: pinned_path(tracker_path, "{hash}"),
        endpoints.TRACKER_EXTRAS: extras,
        endpoints.TRACKER_EXTRAS_MAP: f"{extras}.map",
        endpoints.TRACKER_EXTRAS_PINNED: pinned_path(extras, "{hash}"),
        endpoints.TRACKER_DETAILS: details,
        endpoints.TRACKER_DETAILS_MAP: f"{details}.map",
        endpoints.TRACKER_DETAILS_PINNED: pinned_path(details, "{hash}"),
    }


def tracker_handlers(tracker_path: str) -> Mapping[EndpointSpec, Handler]:
    """Return the handlers of all files of the tracker. Files are read at the first request."""
    source_map = f"{tracker_path.rpartition('/')[2]}.map"
    return {
        endpoints.TRACKER: _script_handler(SCRIPT, source_map),
        endpoints.TRACKER_MAP: _map_handler(SCRIPT),
        endpoints.TRACKER_PINNED: _pinned_handler(SCRIPT),
        endpoints.TRACKER_EXTRAS: _script_handler(EXTRAS, f"{EXTRAS}.map"),
        endpoints.TRACKER_EXTRAS_MAP: _map_handler(EXTRAS),
        endpoints.TRACKER_EXTRAS_PINNED: _pinned_handler(EXTRAS),
        endpoints.TRACKER_DETAILS: _script_handler(DETAILS, f"{DETAILS}.map"),
        endpoints.TRACKER_DETAILS_MAP: _map_handler(DETAILS),
        endpoints.TRACKER_DETAILS_PINNED: _pinned_handler(DETAILS),
        endpoints.TRACKER_MANIFEST: _manifest_handler(tracker_path),
    }


def _script_handler(name: str, source_map: str) -> Handler:
    read = cache(partial(read_tracker_file, name))
    link = (b"sourcemap", source_map.encode())

    async def handle(request: Request) -> Response:
        return _respond(request, read(), SCRIPT_TYPE, link, _FOR_AN_HOUR)

    return handle


def _map_handler(name: str) -> Handler:
    read = cache(partial(read_tracker_file, f"{name}.map"))

    async def handle(request: Request) -> Response:
        return _respond(request, read(), MAP_TYPE, _FOR_AN_HOUR)

    return handle


def _pinned_handler(name: str) -> Handler:
    """Return the handler of all versions of a script. Raises `NotFound` for an unknown hash."""
    read = cache(partial(read_pinned_files, name))

    async def handle(request: Request) -> Response:
        file = read().get(request.scope["path_params"]["hash"])
        if file is None:
            raise NotFound
        return _respond(request, file, SCRIPT_TYPE, _FOR_EVER)

    return handle


def _manifest_handler(tracker_path: str) -> Handler:
    read = cache(lambda: msgspec.json.encode(pinned_script(tracker_path)))

    async def handle(_request: Request) -> Response:
        return Response(200, read(), (JSON_HEADER, *_ANY_PAGE, (b"cache-control", b"no-cache")))

    return handle


def _respond(request: Request, file: TrackerFile, media_type: str, *headers: Header) -> Response:
    return respond_with_file(
        request,
        file.bodies,
        media_type=media_type,
        digest=file.etag,
        headers=(*headers, *_ANY_PAGE),
    )
