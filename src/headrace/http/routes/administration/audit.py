"""GET /v1/admin/audit: who changed what."""

from headrace.administration.audit import AuditReader
from headrace.administration.authorize import AdministrationAuthorizer
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request
from headrace.http.responses import Response
from headrace.http.routes.administration.objects import administration_response, run_blocking
from headrace.http.routes.query import read_query_credentials
from headrace.query.validate.parameters import read_parameters

AUDIT_PARAMETERS = ("limit", "before")


class AuditRoute:
    """Lists the newest lines of the audit log that are in the caller's reach."""

    def __init__(
        self,
        audit_reader: AuditReader,
        *,
        authorizer: AdministrationAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
    ) -> None:
        self._audit_reader = audit_reader
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        await self._body_reader.receive(request)
        caller = await self._authorizer.authorize_reading(
            read_query_credentials(request, self._addresses)
        )
        parameters = read_parameters(request.scope["query_string"], AUDIT_PARAMETERS)
        lines = await run_blocking(
            self._audit_reader.list,
            caller,
            limit=parameters.get("limit"),
            before=parameters.get("before"),
        )
        return administration_response(200, lines, request)
