"""GET /v1/query/schema: what a query may contain, and what is there of one website."""

from typing import Protocol

import msgspec

from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_parameter
from headrace.http.request import Request, cancel_on_disconnect
from headrace.http.responses import Response
from headrace.http.routes.query import authorize_query
from headrace.model.tenancy import WebsiteId
from headrace.query.authorize import QueryAuthorizer
from headrace.query.schema.document import query_schema
from headrace.query.schema.service import WebsiteSchema


class SchemaDescriber(Protocol):
    """The use case behind the schema of a website: `SchemaService`."""

    async def describe(self, website_id: WebsiteId) -> WebsiteSchema:
        """Return what the latest events have. Cancelling the call cancels it in the store."""
        ...


class SchemaRoute:
    """Describes queries to anyone, and the events of a website to callers that may query it."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        describer: SchemaDescriber,
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._describer = describer
        self._document = query_schema()
        self._body = msgspec.json.encode(self._document)

    async def __call__(self, request: Request) -> Response:
        """Return the document. With a website the call counts towards the query rate."""
        if read_parameter(request.scope["query_string"], b"website_id") is None:
            return Response(200, self._body)
        await self._body_reader.receive(request)
        website_id = await authorize_query(request, self._authorizer, self._addresses)
        described = await cancel_on_disconnect(
            self._describer.describe(website_id), request.receive
        )
        body = {**self._document, **msgspec.to_builtins(described)}
        return Response(200, msgspec.json.encode(body))
