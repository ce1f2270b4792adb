"""/v1/saved lists queries; /v1/saved/NAME saves, shows and deletes one."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request
from headrace.http.responses import JSON_HEADER, Header, Response
from headrace.http.routes.query import (
    authorize_query,
    rate_limit_reporter,
    read_query_credentials,
)
from headrace.http.routes.saved.use_case import SavedQueryUseCase
from headrace.model.saved_query import SavedQuery, SavedQueryEntry
from headrace.model.tenancy import WebsiteId
from headrace.ports.saved_queries import SaveResult
from headrace.query.authorize import QueryAuthorizer
from headrace.query.result_values import format_datetime
from headrace.query.validate.parameters import read_parameters

_ROTATE = "rotate"
SAVING_PARAMETERS = ("website_id", _ROTATE)
_NOT_STORED: Header = (b"cache-control", b"no-store")
_FLAGS: Mapping[str | None, bool] = {None: False, "false": False, "true": True}


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


class SavedEntry(Struct, frozen=True):
    """A saved query in the list, with the times of its first and its last change."""

    name: str
    created: str
    updated: str
    url: str


class SavedListResponse(Struct, frozen=True, rename="camel"):
    """The list of saved queries, by name."""

    success: bool
    data: list[SavedEntry]
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
    ) -> None:
        self._saved_queries = saved_queries
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader

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
                rotate = _read_rotate(request)
                body = await self._body_reader.decode_json_text(request, wire)
                saved = await self._saved_queries.save(website_id, name, body, rotate=rotate)
                return self._describe(saved, request)

    async def _authorize_saving(self, request: Request) -> WebsiteId:
        return await self._authorizer.authorize_saving(
            read_query_credentials(request, self._addresses), rate_limit_reporter(request)
        )

    def _describe(self, saved: SaveResult, request: Request) -> Response:
        url = _url(self._addresses, request, saved.query, saved.token)
        data = SavedToken(saved.query.name, saved.token, url)
        body = SavedTokenResponse(success=True, data=data, request_id=request.request_id)
        headers = (JSON_HEADER,) if saved.token is None else (JSON_HEADER, _NOT_STORED)
        return Response(201 if saved.is_new else 200, msgspec.json.encode(body), headers)

    def _show(self, query: SavedQuery, request: Request) -> Response:
        data = SavedDefinition(
            query.name,
            msgspec.Raw(query.body),
            format_datetime(query.created_ms),
            format_datetime(query.updated_ms),
            _url(self._addresses, request, query, None),
        )
        body = SavedDefinitionResponse(success=True, data=data, request_id=request.request_id)
        return Response(200, msgspec.json.encode(body))


class SavedListRoute:
    """GET lists the saved queries of a website."""

    def __init__(
        self,
        saved_queries: SavedQueryUseCase,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
    ) -> None:
        self._saved_queries = saved_queries
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        await self._body_reader.receive(request)
        credentials = read_query_credentials(request, self._addresses)
        website_id = await self._authorizer.authorize_saving(
            credentials, rate_limit_reporter(request)
        )
        entries = await self._saved_queries.list_of(website_id)
        data = [
            SavedEntry(
                entry.name,
                format_datetime(entry.created_ms),
                format_datetime(entry.updated_ms),
                _url(self._addresses, request, entry, None),
            )
            for entry in entries
        ]
        body = SavedListResponse(success=True, data=data, request_id=request.request_id)
        return Response(200, msgspec.json.encode(body))


def _url(
    addresses: ClientAddresses,
    request: Request,
    query: SavedQuery | SavedQueryEntry,
    token: str | None,
) -> str:
    """Return the URL of the answer: it works for everybody with a token, else with a key."""
    host = f"{addresses.scheme(request)}://{addresses.host(request)}"
    right = {"website_id": query.website_id} if token is None else {"token": token}
    return f"{host}/v1/saved/{query.name}.json?{urlencode(right)}"


def _read_rotate(request: Request) -> bool:
    parameters = read_parameters(request.scope["query_string"], SAVING_PARAMETERS)
    text = parameters.get(_ROTATE)
    if text not in _FLAGS:
        detail = f' "{_ROTATE}": must be true or false'
        raise InvalidQuery(QueryErrorCode.INVALID_PARAMETER, detail)
    return _FLAGS[text]
