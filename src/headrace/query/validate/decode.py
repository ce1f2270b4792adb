"""Decodes the body of a custom query into a `wire.QueryRequest`."""

from headrace.model import wire
from headrace.query.validate.decode_body import BodyType, check_filter_keys, check_keys, decode_body

CUSTOM_QUERY = BodyType(
    wire.QueryRequest,
    {
        "query": wire.Query,
        "query.selects": wire.Select,
        "query.filters": wire.Filter,
        "query.selects.filters": wire.Filter,
        "orderBy": wire.OrderBy,
        "having": wire.Having,
        "compare": wire.Compare,
    },
)


def decode_query(body: bytes) -> wire.QueryRequest:
    """Decode a body. Raises `InvalidQuery`: `Invalid request body` with the error and its path."""
    request = decode_body(body, CUSTOM_QUERY)
    check_keys(request.having, "having", CUSTOM_QUERY)
    check_keys(request.compare, "compare", CUSTOM_QUERY)
    for index, select in enumerate(request.query.selects):
        check_filter_keys(select.filters or (), f"query.selects[{index}].filters")
    check_filter_keys(request.query.filters or (), "query.filters")
    return request
