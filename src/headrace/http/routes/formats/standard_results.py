"""The format of the result of a standard query: JSON with a key for each type."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from headrace.http.responses import JSON_HEADER, JSON_TYPE, Response
from headrace.http.routes.formats.query_results import QueryMeta, Writer, compared_days, read_info
from headrace.query.standard.service import StandardResult


class StandardResponse(Struct, frozen=True, rename="camel"):
    """The body of the result of a standard query."""

    success: bool
    data: Mapping[str, Any]
    meta: QueryMeta
    request_id: str


def write_standard(result: StandardResult, request_id: str) -> Response:
    """Encode the rows of each type under its name."""
    compared = result.compare
    meta = QueryMeta(
        row_count=result.row_count,
        execution_time=result.execution_ms,
        limit=result.limit,
        truncated=result.truncated,
        compare=UNSET if compared is None else compared_days(compared.first_day, compared.last_day),
        **read_info(result.read),
    )
    body = StandardResponse(success=True, data=result.data, meta=meta, request_id=request_id)
    return Response(200, msgspec.json.encode(body), (JSON_HEADER,))


STANDARD_FORMATS: Mapping[str, Writer[StandardResult]] = {JSON_TYPE: write_standard}
"""The formats of standard queries, by media type."""
