"""/v1/admin: lists and changes organizations, websites and keys."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, ParamSpec, TypeVar

import msgspec

from headrace.administration.audit import AuditReader
from headrace.administration.authorize import AdministrationAuthorizer
from headrace.administration.quarantine import QuarantineAdministration
from headrace.administration.resources import Keys, Organizations, Resource, Websites
from headrace.base.errors import (
    DirectoryUnavailable,
    InvalidQuery,
    OperatorError,
    QueryErrorCode,
    RejectedField,
)
from headrace.formats.directory_objects import NewKeyObject
from headrace.http import endpoints
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request
from headrace.http.responses import JSON_HEADER, Header, Response, Success
from headrace.http.routes.query import rate_limit_reporter, read_query_credentials
from headrace.model.tenancy import ApiKey
from headrace.ports.directory import Directory
from headrace.ports.quarantine import RetryableQuarantine

_NOT_STORED: Final[Header] = (b"cache-control", b"no-store")

_P = ParamSpec("_P")
_T = TypeVar("_T")


class AdministrationUseCases(NamedTuple):
    """What each endpoint lists and changes, the quarantine, and what reads the audit log."""

    resources: Mapping[EndpointSpec, Resource]
    quarantine: QuarantineAdministration
    audit_reader: AuditReader


class AdministrationRoute:
    """One kind of objects: all of them, or the one whose id is in the path."""

    def __init__(
        self,
        resource: Resource,
        *,
        authorizer: AdministrationAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
    ) -> None:
        self._resource = resource
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader

    async def __call__(self, request: Request) -> Response:
        """Answer one request. A change goes on when its client leaves."""
        wire = await self._body_reader.receive(request)
        object_id: str | None = request.scope["path_params"].get("id")
        match request.scope["method"]:
            case "GET":
                caller = await self._authorizer.authorize_reading(
                    read_query_credentials(request, self._addresses)
                )
                if object_id is None:
                    return administration_response(
                        200, await run_blocking(self._resource.list, caller), request
                    )
                found = await run_blocking(self._resource.read, caller, object_id)
                return administration_response(200, found, request)
            case "POST":
                caller = await self._authorize_writing(request)
                body = await self._body_reader.decode_json_text(request, wire)
                made = await run_blocking(self._resource.create, caller, body)
                return administration_response(
                    201, made, request, *((_NOT_STORED,) if isinstance(made, NewKeyObject) else ())
                )
            case "PATCH":
                caller = await self._authorize_writing(request)
                body = await self._body_reader.decode_json_text(request, wire)
                changed = await run_blocking(self._resource.change, caller, object_id or "", body)
                return administration_response(200, changed, request)
            case _:
                caller = await self._authorize_writing(request)
                left = await run_blocking(self._resource.delete, caller, object_id or "")
                return administration_response(200, left, request)

    async def _authorize_writing(self, request: Request) -> ApiKey:
        return await self._authorizer.authorize_writing(
            read_query_credentials(request, self._addresses),
            rate_limit_reporter(request),
        )


def administration_use_cases(
    directory: Directory, quarantine: RetryableQuarantine
) -> AdministrationUseCases:
    """Return the use cases of administration over a directory and a quarantine."""
    organizations, websites, keys = Organizations(directory), Websites(directory), Keys(directory)
    resources: Mapping[EndpointSpec, Resource] = {
        endpoints.ADMIN_ORGANIZATIONS: organizations,
        endpoints.ADMIN_ORGANIZATION: organizations,
        endpoints.ADMIN_WEBSITES: websites,
        endpoints.ADMIN_WEBSITE: websites,
        endpoints.ADMIN_KEYS: keys,
        endpoints.ADMIN_KEY: keys,
    }
    return AdministrationUseCases(
        resources, QuarantineAdministration(quarantine, directory), AuditReader(directory)
    )


async def run_blocking(call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a blocking call of administration, and say to the client what it did wrong."""
    try:
        return await asyncio.to_thread(call, *args, **kwargs)
    except RejectedField as error:
        raise InvalidQuery(QueryErrorCode.INVALID_BODY, f": {error.field}: {error}") from error
    except OperatorError as error:
        raise DirectoryUnavailable(str(error)) from error


def administration_response(
    status: int, data: object, request: Request, *headers: Header
) -> Response:
    """Return a success in the envelope of /v1/admin."""
    body = Success(success=True, data=data, request_id=request.request_id)
    return Response(status, msgspec.json.encode(body), (JSON_HEADER, *headers))
