"""/v1/admin/quarantine: lists and shows quarantined entries, and retries them."""

from collections.abc import Awaitable, Callable

from headrace.administration.authorize import AdministrationAuthorizer
from headrace.administration.quarantine import QuarantineAdministration
from headrace.base.errors import StoreUnavailable
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request
from headrace.http.responses import Response
from headrace.http.routes.administration.objects import administration_response, run_blocking
from headrace.http.routes.query import rate_limit_reporter, read_query_credentials

IsLoading = Callable[[], Awaitable[bool]]
"""Whether the engine process loads what is in the logs. Never raises."""


class QuarantineRoute:
    """All entries, the one whose id is in the path, or its retry, which is the only POST."""

    def __init__(
        self,
        quarantine: QuarantineAdministration,
        *,
        is_loading: IsLoading,
        authorizer: AdministrationAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
    ) -> None:
        self._quarantine = quarantine
        self._is_loading = is_loading
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader

    async def __call__(self, request: Request) -> Response:
        """Answer one request. A retry goes on when its client leaves."""
        await self._body_reader.receive(request)
        if request.scope["method"] == "POST":
            return await self._retry(request)
        caller = await self._authorizer.authorize_reading(
            read_query_credentials(request, self._addresses)
        )
        entry_id: str | None = request.scope["path_params"].get("id")
        if entry_id is None:
            found = await run_blocking(self._quarantine.list, caller)
            return administration_response(200, found, request)
        shown = await run_blocking(self._quarantine.read, caller, entry_id)
        return administration_response(200, shown, request)

    async def _retry(self, request: Request) -> Response:
        caller = await self._authorizer.authorize_writing(
            read_query_credentials(request, self._addresses),
            rate_limit_reporter(request),
        )
        entry_id: str = request.scope["path_params"]["id"]
        await run_blocking(self._quarantine.check_reached, caller, entry_id)
        if not await self._is_loading():
            raise StoreUnavailable("the engine does not load what is retried")
        retried = await run_blocking(self._quarantine.retry, caller, entry_id)
        return administration_response(200, retried, request)
