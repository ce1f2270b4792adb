"""The handlers of saved queries, by endpoint."""

from collections.abc import Mapping

from headrace.base.settings import Settings
from headrace.http import endpoints
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Handler
from headrace.http.routes.saved.answers import saved_answer_handler
from headrace.http.routes.saved.definitions import SavedListRoute, SavedQueryRoute
from headrace.http.routes.saved.use_case import SavedQueryUseCase
from headrace.query.authorize import QueryAuthorizer


def saved_handlers(
    saved_queries: SavedQueryUseCase,
    *,
    authorizer: QueryAuthorizer,
    addresses: ClientAddresses,
    body_reader: BodyReader,
    settings: Settings,
) -> Mapping[EndpointSpec, Handler]:
    """Return the handlers of all endpoints."""
    return {
        endpoints.SAVED_LIST: SavedListRoute(
            saved_queries, authorizer=authorizer, addresses=addresses, body_reader=body_reader
        ),
        endpoints.SAVED: SavedQueryRoute(
            saved_queries, authorizer=authorizer, addresses=addresses, body_reader=body_reader
        ),
        endpoints.SAVED_ANSWER: saved_answer_handler(
            saved_queries,
            authorizer=authorizer,
            addresses=addresses,
            body_reader=body_reader,
            settings=settings,
        ),
    }
