"""GET /v1/storage: what is stored of a website, or of all that a key reaches."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request, cancel_on_disconnect
from headrace.http.responses import Response
from headrace.http.routes.query import rate_limit_reporter, read_query_credentials
from headrace.model.stored_rows import StoredRows
from headrace.model.tenancy import WebsiteId
from headrace.pruning.objects import StorageObject, storage_object
from headrace.query.authorize import QueryAuthorizer
from headrace.query.validate.parameters import read_parameters

STORAGE_PARAMETERS = ("website_id",)


class StorageDescriber(Protocol):
    """Describes what is stored: `EngineStorageClient`."""

    async def describe(self, website_id: WebsiteId | None) -> Sequence[StoredRows]:
        """Return the rows of each table of a website, or of all. Raises `StoreUnavailable`."""
        ...


class StorageResponse(Struct, frozen=True, rename="camel"):
    """The rows of each table of the website, or of each website that the key reaches."""

    success: bool
    data: list[StorageObject]
    request_id: str


class StorageRoute:
    """Describes what is stored of a website, or of a key's own, to callers that may query them."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        describer: StorageDescriber,
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._describer = describer

    async def __call__(self, request: Request) -> Response:
        """Return the rows of each table. The call counts towards the query rate."""
        await self._body_reader.receive(request)
        stored = await self._describe(request)
        body = StorageResponse(
            success=True,
            data=[storage_object(one) for one in stored],
            request_id=request.request_id,
        )
        return Response(200, msgspec.json.encode(body))

    async def _describe(self, request: Request) -> Sequence[StoredRows]:
        credentials = read_query_credentials(request, self._addresses)
        on_rate_limit = rate_limit_reporter(request)
        if credentials.website_id is not None:
            website_id = await self._authorizer.authorize(credentials, on_rate_limit)
            _check_parameters(request)
            return await cancel_on_disconnect(self._describer.describe(website_id), request.receive)
        own = await self._authorizer.authorize_own_websites(credentials, on_rate_limit)
        _check_parameters(request)
        stored = await cancel_on_disconnect(self._describer.describe(None), request.receive)
        return [one for one in stored if one.website_id in own]


def _check_parameters(request: Request) -> None:
    """Refuse a misspelled website: the response would be about all of them."""
    read_parameters(request.scope["query_string"], STORAGE_PARAMETERS)
