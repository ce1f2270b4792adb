"""POST /v1/subject-access: everything that is stored of one subject, streamed."""

import contextlib
from collections.abc import AsyncGenerator

from headrace.erasure.subject_access import SubjectAccess
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.request import Request, cancel_on_disconnect
from headrace.http.responses import StreamedResponse
from headrace.http.routes.query import rate_limit_reporter, read_query_credentials
from headrace.http.routes.rows.export import NDJSON_TYPE
from headrace.http.routes.rows.selection_body import read_selection
from headrace.query.authorize import QueryAuthorizer


class SubjectAccessRoute:
    """Streams a line for each row of the subject that a body selects."""

    def __init__(
        self,
        *,
        authorizer: QueryAuthorizer,
        addresses: ClientAddresses,
        body_reader: BodyReader,
        subject_access: SubjectAccess,
    ) -> None:
        self._authorizer = authorizer
        self._addresses = addresses
        self._body_reader = body_reader
        self._subject_access = subject_access

    async def __call__(self, request: Request) -> StreamedResponse:
        """Read the first row and return the response that streams it and the others.

        So a store that is away is a 503 and no cut connection.
        """
        wire = await self._body_reader.receive(request)
        caller = await self._authorizer.authorize_writing(
            read_query_credentials(request, self._addresses),
            rate_limit_reporter(request),
        )
        body = await self._body_reader.decode_json_text(request, wire)
        subject, _ = read_selection(body)
        lines = self._subject_access.lines(
            caller.website_id, [subject.selector], with_visitors=subject.with_visitors
        )
        try:
            first = await cancel_on_disconnect(anext(lines, b""), request.receive)
        except BaseException:
            await lines.aclose()
            raise
        headers = (
            (b"content-type", NDJSON_TYPE.encode()),
            (b"content-disposition", b'attachment; filename="subject.ndjson"'),
            (b"cache-control", b"no-store"),
        )
        return StreamedResponse(200, _with_first(first, lines), headers)


async def _with_first(first: bytes, lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with contextlib.aclosing(lines):
        yield first
        async for line in lines:
            yield line
