"""The page for people, and the way to it."""

from functools import cache
from typing import Final

from headrace.base.errors import NotAcceptable, NotFound
from headrace.http.page.files import PageFile, PageFiles
from headrace.http.reading.negotiation import accepts_media_type
from headrace.http.request import Handler, Request
from headrace.http.responses import Header, Response
from headrace.http.routes.encoded_files import respond_with_file

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_INDEX_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)
_ASSET_HEADERS: Final[tuple[Header, ...]] = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
)
_ASSETS: Final = "assets/"


def page_handler() -> Handler:
    """Return the handler of all paths below /app/. Files are read at the first request.

    Assets have the digest of all files in their path. Every other path shows the page, whose URL
    says what it shows.
    """
    read = cache(PageFiles)

    async def handle(request: Request) -> Response:
        path: str = request.scope["path_params"]["path"]
        page = read()
        if not path.startswith(_ASSETS):
            return _respond(request, page.index, page.digest, _INDEX_HEADERS)
        digest, _, name = path.removeprefix(_ASSETS).partition("/")
        asset = page.asset(name) if digest == page.digest else None
        if asset is None:
            raise NotFound
        return _respond(request, asset, page.digest, _ASSET_HEADERS)

    return handle


async def root_handler(request: Request) -> Response:
    """Lead browsers to the page. Raises `NotAcceptable` for clients that take no HTML."""
    accept = request.headers.get(b"accept", b"*/*").decode("latin-1")
    if not accepts_media_type(accept, "text/html"):
        raise NotAcceptable
    return Response(302, b"", ((b"location", b"/app/"), (b"vary", b"Accept")))


def _respond(
    request: Request, file: PageFile, digest: str, headers: tuple[Header, ...]
) -> Response:
    return respond_with_file(
        request, file.bodies, media_type=file.media_type, digest=digest, headers=headers
    )
