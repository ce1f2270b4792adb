"""GET /v1/saved/NAME.FORMAT: the answer of a saved query, with an entity tag."""

import msgspec

from headrace.base.settings import Settings
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.credentials import read_parameter
from headrace.http.reading.entity_tags import has_entity_tag
from headrace.http.request import Handler, Request, cancel_on_disconnect
from headrace.http.responses import Header, Response
from headrace.http.routes.formats.saved_answers import saved_formats
from headrace.http.routes.query import authorize_query, rate_limit_reporter
from headrace.http.routes.saved.use_case import SavedQueryUseCase
from headrace.model.saved_query import SavedQuery
from headrace.query.authorize import QueryAuthorizer

_REVALIDATED: Header = (b"cache-control", b"private, no-cache")


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
    # By the setting, too: the versions of rows outlive the restart that changes it.
    tagged_formats = {**{name: name for name in formats}, "csv": f"csv-{settings.query_csv_text}"}

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
            saved_queries.answer(
                query,
                tagged_formats[media_format],
                lambda tag: has_entity_tag(request, tag.encode()),
            ),
            request.receive,
        )
        headers = ((b"etag", answer.entity_tag.encode()), _REVALIDATED)
        if answer.result is None:
            return Response(304, b"", headers)
        written = formats[media_format](answer.result, request.request_id)
        return msgspec.structs.replace(written, headers=(*written.headers, *headers))

    return handle
