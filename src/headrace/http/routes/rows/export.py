"""GET /v1/export: the rows of a website as one file, streamed."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from headrace.base.errors import DirectoryUnavailable, OperatorError
from headrace.formats.audited_changes import export_change
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request, cancel_on_disconnect
from headrace.http.responses import Header, StreamedResponse
from headrace.http.routes.formats.query_results import ARROW_TYPE, CSV_TYPE
from headrace.http.routes.query import read_query_credentials
from headrace.model.export import ExportFormat, ExportRequest
from headrace.ports.audit import RecordChanges
from headrace.query.authorize import QueryAuthorizer
from headrace.query.export.check import EXPORT_PARAMETERS, check_export
from headrace.query.export.service import ExportedPiece
from headrace.query.validate.parameters import read_parameters

NDJSON_TYPE = "application/x-ndjson"
PARQUET_TYPE = "application/vnd.apache.parquet"

MEDIA_TYPES: Mapping[ExportFormat, str] = {
    ExportFormat.NDJSON: NDJSON_TYPE,
    ExportFormat.PARQUET: PARQUET_TYPE,
    ExportFormat.CSV: f"{CSV_TYPE}; charset=utf-8; header=present",
    ExportFormat.ARROW: ARROW_TYPE,
}


class RunningExport(Protocol):
    """An export that has begun: `ExportRun`."""

    def pieces(self) -> AsyncGenerator[ExportedPiece]:
        """Return the bytes of the file in order."""
        ...


class Exporter(Protocol):
    """The use case behind the endpoint: `ExportService`."""

    def begin(
        self, request: ExportRequest
    ) -> contextlib.AbstractAsyncContextManager[RunningExport]:
        """Begin an export, which ends with the context. Raises `StoreUnavailable`."""
        ...


class ExportRoute:
    """Streams an export."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        exporter: Exporter,
        record_changes: RecordChanges,
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._exporter = exporter
        self._record_changes = record_changes

    async def __call__(self, request: Request) -> StreamedResponse:
        """Begin the export and return the response that streams it.

        The first bytes are made here, so a store that is away is a 503 and no cut connection.
        """
        await self._body_reader.receive(request)
        caller = await self._authorizer.authorize_management(
            read_query_credentials(request, self._addresses)
        )
        parameters = read_parameters(request.scope["query_string"], EXPORT_PARAMETERS)
        export = check_export(
            caller.website_id,
            table=parameters.get("table"),
            format_name=parameters.get("format"),
            first_day=parameters.get("from"),
            last_day=parameters.get("to"),
        )
        body = _started(self._exporter, export)
        try:
            await cancel_on_disconnect(anext(body), request.receive)
            await self._record(caller.name, export)
        except BaseException:
            await body.aclose()
            raise
        return StreamedResponse(200, body, _headers(export))

    async def _record(self, by: str, export: ExportRequest) -> None:
        """Write the line of the export, before any byte of it is sent."""
        try:
            await asyncio.to_thread(self._record_changes, by, [export_change(export)])
        except OperatorError as error:
            raise DirectoryUnavailable(f"the audit log cannot be written: {error}") from error


async def _started(exporter: Exporter, export: ExportRequest) -> AsyncGenerator[bytes | memoryview]:
    """Yield nothing when the export has begun, then its bytes."""
    async with exporter.begin(export) as run, contextlib.aclosing(run.pieces()) as pieces:
        yield b""
        async for piece in pieces:
            yield piece.data


def _headers(export: ExportRequest) -> tuple[Header, ...]:
    name = f"{export.table}.{export.format.value}"
    return (
        (b"content-type", MEDIA_TYPES[export.format].encode()),
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
        (b"cache-control", b"no-store"),
    )
