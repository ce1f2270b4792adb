"""/v1/saved/NAME: saves, shows and deletes a query; with a format at its end, the answer."""

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.base.json_size import JsonLimits, check_json_size
from headrace.base.settings import Settings
from headrace.http import endpoints
from headrace.http.endpoints import EndpointSpec
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_parameter
from headrace.http.request import Handler, Request, cancel_on_disconnect
from headrace.http.responses import JSON_HEADER, Header, Response
from headrace.http.routes.formats.saved_answers import saved_formats
from headrace.http.routes.query import (
    authorize_query,
    rate_limit_reporter,
    read_query_credentials,
)
from headrace.model.saved_query import SavedQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.saved_queries import SaveResult
from headrace.query.authorize import QueryAuthorizer
from headrace.query.result_values import format_datetime
from headrace.query.saved.service import IsKnown, SavedAnswer

_NOT_STORED: Header = (b"cache-control", b"no-store")
_REVALIDATED: Header = (b"cache-control", b"private, no-cache")
_FLAGS: Mapping[str | None, bool] = {None: False, "false": False, "true": True}


class SavedQueryUseCase(Protocol):
    """The use case behind the endpoints: `SavedQueryService`."""

    async def save(
        self, website_id: WebsiteId, name: str, body: bytes, *, rotate: bool
    ) -> SaveResult:
        """Save a query."""
        ...

    async def read(self, website_id: WebsiteId, name: str) -> SavedQuery:
        """Return a saved query."""
        ...

    async def delete(self, website_id: WebsiteId, name: str) -> SavedQuery:
        """Delete a saved query and return what was deleted."""
        ...

    async def read_by_token(self, token: str, name: str, website_id: str | None) -> SavedQuery:
        """Return the saved query of a token."""
        ...

    async def answer(self, saved: SavedQuery, media_format: str, is_known: IsKnown) -> SavedAnswer:
        """Answer a saved query. Cancelling the call cancels the query in the store."""
        ...


class SavedToken(Struct, frozen=True):
    """A saved query; `token` is null unless the request has made it."""

    name: str
    token: str | None
    url: str


class SavedTokenResponse(Struct, frozen=True, rename="camel"):
    """The response to saving a query."""

    success: bool
    data: SavedToken
    request_id: str


class SavedDefinition(Struct, frozen=True):
    """A saved query as it was sent, with the times of its first and its last change."""

    name: str
    query: Any
    created: str
    updated: str
    url: str


class SavedDefinitionResponse(Struct, frozen=True, rename="camel"):
    """The response that shows a saved query."""

    success: bool
    data: SavedDefinition
    request_id: str


class SavedQueryRoute:
    """PUT saves a query, GET shows it, DELETE deletes it."""

    def __init__(
        self,
        saved_queries: SavedQueryUseCase,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        json_limits: JsonLimits,
    ) -> None:
        self._saved_queries = saved_queries
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._json_limits = json_limits

    async def __call__(self, request: Request) -> Response:
        """Answer one request. A change goes on when its client leaves."""
        wire = await self._body_reader.receive(request)
        name: str = request.scope["path_params"]["name"]
        match request.scope["method"]:
            case "GET":
                website_id = await authorize_query(request, self._authorizer, self._addresses)
                return self._show(await self._saved_queries.read(website_id, name), request)
            case "DELETE":
                website_id = await self._authorize_saving(request)
                return self._show(await self._saved_queries.delete(website_id, name), request)
            case _:
                website_id = await self._authorize_saving(request)
                rotate = _read_flag(request, "rotate")
                body = await self._body_reader.decode(request, wire)
                check_json_size(body, self._json_limits)
                saved = await self._saved_queries.save(website_id, name, body, rotate=rotate)
                return self._describe(saved, request)

    async def _authorize_saving(self, request: Request) -> WebsiteId:
        return await self._authorizer.authorize_saving(
            read_query_credentials(request, self._addresses), rate_limit_reporter(request)
        )

    def _describe(self, saved: SaveResult, request: Request) -> Response:
        data = SavedToken(
            saved.query.name, saved.token, self._url(saved.query, saved.token, request)
        )
        body = SavedTokenResponse(success=True, data=data, request_id=request.request_id)
        headers = (JSON_HEADER,) if saved.token is None else (JSON_HEADER, _NOT_STORED)
        return Response(201 if saved.is_new else 200, msgspec.json.encode(body), headers)

    def _show(self, query: SavedQuery, request: Request) -> Response:
        data = SavedDefinition(
            query.name,
            msgspec.Raw(query.body),
            format_datetime(query.created_ms),
            format_datetime(query.updated_ms),
            self._url(query, None, request),
        )
        body = SavedDefinitionResponse(success=True, data=data, request_id=request.request_id)
        return Response(200, msgspec.json.encode(body))

    def _url(self, query: SavedQuery, token: str | None, request: Request) -> str:
        """Return the URL of the answer: it works for everybody with a token, else with a key."""
        host = f"{self._addresses.scheme(request)}://{self._addresses.host(request)}"
        right = {"website_id": query.website_id} if token is None else {"token": token}
        return f"{host}/v1/saved/{query.name}.json?{urlencode(right)}"


def saved_answer_handler(
    saved_queries: SavedQueryUseCase,
    *,
    authorizer: QueryAuthorizer,
    addresses: ClientAddresses,
    body_reader: BodyReader,
    settings: Settings,
) -> Handler:
    """Return the handler of GET /v1/saved/NAME.FORMAT."""
    formats = saved_formats(settings)

    async def find(request: Request, name: str) -> SavedQuery:
        query_string = request.scope["query_string"]
        token = read_parameter(query_string, b"token")
        if token is None:
            website_id = await authorize_query(request, authorizer, addresses)
            return await saved_queries.read(website_id, name)
        named = read_parameter(query_string, b"website_id")
        query = await saved_queries.read_by_token(token, name, named)
        await authorizer.authorize_shared(query.website_id, name, rate_limit_reporter(request))
        return query

    async def handle(request: Request) -> Response:
        await body_reader.receive(request)
        name: str = request.scope["path_params"]["name"]
        media_format = request.scope["path"].rpartition(".")[2]
        query = await find(request, name)
        answer = await cancel_on_disconnect(
            saved_queries.answer(query, media_format, lambda tag: _has_tag(request, tag)),
            request.receive,
        )
        headers = ((b"etag", answer.entity_tag.encode()), _REVALIDATED)
        if answer.result is None:
            return Response(304, b"", headers)
        written = formats[media_format](answer.result, request.request_id)
        return msgspec.structs.replace(written, headers=(*written.headers, *headers))

    return handle


def saved_handlers(
    saved_queries: SavedQueryUseCase,
    *,
    authorizer: QueryAuthorizer,
    addresses: ClientAddresses,
    body_reader: BodyReader,
    json_limits: JsonLimits,
    settings: Settings,
) -> Mapping[EndpointSpec, Handler]:
    """Return the handlers of both endpoints."""
    return {
        endpoints.SAVED: SavedQueryRoute(
            saved_queries,
            authorizer=authorizer,
            addresses=addresses,
            body_reader=body_reader,
            json_limits=json_limits,
        ),
        endpoints.SAVED_ANSWER: saved_answer_handler(
            saved_queries,
            authorizer=authorizer,
            addresses=addresses,
            body_reader=body_reader,
            settings=settings,
        ),
    }


def _has_tag(request: Request, tag: str) -> bool:
    """Return whether If-None-Match has a tag, by weak comparison (RFC 9110, section 13.1.2)."""
    opaque = tag.removeprefix("W/").encode()
    sent = b",".join(request.header_values(b"if-none-match")).split(b",")
    return any(one.strip().removeprefix(b"W/") in (opaque, b"*") for one in sent)


def _read_flag(request: Request, name: str) -> bool:
    text = read_parameter(request.scope["query_string"], name.encode())
    if text not in _FLAGS:
        detail = f' "{name}": must be true or false'
        raise InvalidQuery(QueryErrorCode.INVALID_PARAMETER, detail)
    return _FLAGS[text]
