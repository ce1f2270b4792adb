"""/v1/session: signs in to the page, tells who is signed in, and signs out."""

from typing import Final

import msgspec
from msgspec import Struct

from headrace.administration.sign_in import Session, SignInService
from headrace.base.datetime_text import format_iso
from headrace.base.errors import InvalidBody, OriginNotAuthorized, UnsupportedMediaType
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.json_body import decode_json
from headrace.http.reading.session_cookie import SessionCookies
from headrace.http.request import Request
from headrace.http.responses import JSON_HEADER, Header, Response

_JSON: Final = b"application/json"
_NOT_STORED: Final[Header] = (b"cache-control", b"no-store")


class SignInBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a sign-in: exactly one of the two."""

    key: str | None = None
    code: str | None = None


class SessionWebsite(Struct, frozen=True):
    """A website that a session reaches."""

    id: str
    name: str
    domain: str


class SessionObject(Struct, frozen=True):
    """What a session may do, where, and until when."""

    scopes: tuple[str, ...]
    websites: tuple[SessionWebsite, ...]
    expires: str


class SessionResponse(Struct, frozen=True, rename="camel"):
    """The response to a sign-in, and to the question who is signed in."""

    success: bool
    data: SessionObject
    request_id: str


class SessionRoute:
    """POST signs in, GET tells who is signed in, DELETE signs out."""

    def __init__(
        self,
        *,
        sign_in: SignInService,
        cookies: SessionCookies,
        addresses: ClientAddresses,
        body_reader: BodyReader,
    ) -> None:
        self._sign_in = sign_in
        self._cookies = cookies
        self._addresses = addresses
        self._body_reader = body_reader

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        method = request.scope["method"]
        if method == "POST":
            return await self._post(request)
        await self._body_reader.receive(request)
        secret = self._cookies.secret_of(request)
        if method == "DELETE":
            await self._sign_in.end(secret)
            return Response(204, b"", (self._cookies.clearing(request), _NOT_STORED))
        return _described(await self._sign_in.describe(secret), request)

    async def _post(self, request: Request) -> Response:
        _require_json(request)
        wire = await self._body_reader.receive(request)
        if self._cookies.is_from_elsewhere(request):
            raise OriginNotAuthorized
        body = _parse(await self._body_reader.decode(request, wire))
        begun = await self._sign_in.begin(
            key=body.key, code=body.code, address=self._addresses.find(request)
        )
        cookie = self._cookies.setting(request, begun.secret)
        return _described(begun.session, request, cookie)


def _require_json(request: Request) -> None:
    """Refuse what a form of another page can send, which needs no permission of this service."""
    content_type = request.headers.get(b"content-type", b"")
    if content_type.partition(b";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaType(content_type.decode("latin-1"))


def _parse(body: bytes) -> SignInBody:
    parsed = decode_json(body, SignInBody)
    if (parsed.key is None) == (parsed.code is None):
        raise InvalidBody
    return parsed


def _described(session: Session, request: Request, *headers: Header) -> Response:
    data = SessionObject(
        scopes=tuple(sorted(scope.value for scope in session.key.scopes)),
        websites=tuple(
            SessionWebsite(website.id, website.name, website.domain) for website in session.websites
        ),
        expires=format_iso(session.key.expires_ms or 0),
    )
    body = SessionResponse(success=True, data=data, request_id=request.request_id)
    return Response(200, msgspec.json.encode(body), (JSON_HEADER, *headers, _NOT_STORED))
