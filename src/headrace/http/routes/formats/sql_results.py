"""The formats of the SQL of a query: JSON, and the text alone."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from headrace.http.responses import JSON_HEADER, JSON_TYPE, Response
from headrace.http.routes.formats.query_results import Writer

SQL_TYPE = "application/sql"


class SqlResponse(Struct, frozen=True, rename="camel"):
    """The body in JSON."""

    success: bool
    sql: str
    request_id: str


def _write_json(sql: str, request_id: str) -> Response:
    body = SqlResponse(success=True, sql=sql, request_id=request_id)
    return Response(200, msgspec.json.encode(body), (JSON_HEADER,))


def _write_text(sql: str, request_id: str) -> Response:
    del request_id  # a header has it
    return Response(200, sql.encode(), ((b"content-type", SQL_TYPE.encode()),))


SQL_FORMATS: Mapping[str, Writer[str]] = {JSON_TYPE: _write_json, SQL_TYPE: _write_text}
"""The writers by media type, the default first."""
