"""/v1/erasures: begins erasures, and shows their receipts."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec

from headrace.base.errors import InvalidBody, NotFound
from headrace.erasure.receipt import ErasureDryRun, ErasureReceipt, receipt, rows_to_erase
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request
from headrace.http.responses import Response, Success
from headrace.http.routes.query import rate_limit_reporter, read_query_credentials
from headrace.http.routes.rows.selection_body import read_selection
from headrace.model.erasure import ErasureRequest
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.erasure import Erasure
from headrace.query.authorize import QueryAuthorizer

_DRY_RUN: Final = "dryRun"


class ErasureResponse(Success[ErasureReceipt], frozen=True):
    """The receipt of an erasure."""


class ErasureListResponse(Success[list[ErasureReceipt]], frozen=True):
    """The receipts of a website's erasures, newest first."""


class ErasureDryRunResponse(Success[ErasureDryRun], frozen=True):
    """What a dry run found."""


class ErasureBeginner(Protocol):
    """Begins erasures: `EngineErasureClient`."""

    async def begin(self, request: ErasureRequest) -> Erasure:
        """Begin an erasure; return when no answer has its rows, or soon after a step has failed.

        Raises `StoreUnavailable`: nothing has begun then.
        """
        ...


class ErasureReader(Protocol):
    """Reads erasures: `ErasureStore`. Blocking. Raises `StoreUnavailable`."""

    def get(self, erasure_id: str) -> Erasure | None:
        """Return an erasure, None for an unknown id."""
        ...

    def all(self) -> Sequence[Erasure]:
        """Return all erasures, oldest first."""
        ...


class ErasuresRoute:
    """POST begins an erasure, GET lists those of a website."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        beginner: ErasureBeginner,
        reader: ErasureReader,
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._beginner = beginner
        self._reader = reader

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        wire = await self._body_reader.receive(request)
        credentials = read_query_credentials(request, self._addresses)
        if request.scope["method"] == "GET":
            caller = await self._authorizer.authorize_management(credentials)
            return await self._list(caller.website_id, request)
        caller = await self._authorizer.authorize_writing(
            credentials,
            rate_limit_reporter(request),
        )
        body = await self._body_reader.decode_json_text(request, wire)
        # Not cancelled when the client leaves: what has begun goes on.
        erasure_request = parse_erasure(body, caller.website_id, by=caller.name)
        erasure = await self._beginner.begin(erasure_request)
        if erasure_request.dry_run:
            return _success(200, rows_to_erase(erasure), request)
        return _success(202, receipt(erasure), request)

    async def _list(self, website_id: WebsiteId, request: Request) -> Response:
        found = await asyncio.to_thread(self._reader.all)
        receipts = [receipt(one) for one in reversed(found) if one.website_id == website_id]
        return _success(200, receipts, request)


def erasure_handler(
    *,
    authorizer: QueryAuthorizer,
    addresses: ClientAddresses,
    body_reader: BodyReader,
    reader: ErasureReader,
) -> Callable[[Request], Any]:
    """Return the handler of GET /v1/erasures/ID."""

    async def handle_erasure(request: Request) -> Response:
        await body_reader.receive(request)
        reaches = await authorizer.authorize_management_of_any(
            read_query_credentials(request, addresses)
        )
        erasure = await asyncio.to_thread(reader.get, request.scope["path_params"]["id"])
        if erasure is None or not reaches(erasure.website_id):
            raise NotFound
        return _success(200, receipt(erasure), request)

    return handle_erasure


def parse_erasure(body: bytes, website_id: WebsiteId, *, by: str) -> ErasureRequest:
    """Return the erasure that a body asks for. Raises `InvalidBody`."""
    selection, fields = read_selection(body, options={_DRY_RUN})
    dry_run = fields.get(_DRY_RUN, False)
    if not isinstance(dry_run, bool):
        raise InvalidBody
    return ErasureRequest(
        website_id=website_id,
        selectors=(selection.selector,),
        by=by,
        with_visitors=selection.with_visitors,
        dry_run=dry_run,
    )


def _success(status: int, data: object, request: Request) -> Response:
    body = Success(success=True, data=data, request_id=request.request_id)
    return Response(status, msgspec.json.encode(body))
