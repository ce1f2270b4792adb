"""Decodes a request body and applies every rule that needs no credentials."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from msgspec import Struct

from headrace.base.errors import InvalidBody
from headrace.ingest.receive.decode import IngestPath, WireItem, decode_items, list_field_errors
from headrace.ingest.receive.enrich import VISITOR_CHECKS, check_visitors
from headrace.ingest.receive.timestamps import parse_timestamp, parse_timestamps
from headrace.ingest.receive.validation_errors import Check


class DecodedRequest(Struct, frozen=True):
    """A body that satisfies every rule that needs no credentials.

    `timestamps_ms` is parallel to `items`.
    """

    received_ms: int
    items: Sequence[WireItem]
    timestamps_ms: Sequence[int]


def decode_request(
    endpoint: IngestPath, body: bytes, *, received_ms: int, has_api_key: bool, max_items: int
) -> DecodedRequest:
    """Decode a body. Raises `InvalidBody` or `PayloadTooLarge`; see `decode_items`."""
    checks = _field_checks(received_ms, has_api_key=has_api_key)
    items = decode_items(endpoint, body, max_items=max_items, checks=checks)
    try:
        sent = [item.timestamp for item in items]
        timestamps_ms = parse_timestamps(sent, received_ms=received_ms)
        if has_api_key:
            check_visitors(items)
    except ValueError as error:
        raise InvalidBody(list_field_errors(endpoint, body, checks=checks)) from error
    return DecodedRequest(received_ms, items, timestamps_ms)


@lru_cache(maxsize=2)
def _field_checks(received_ms: int, *, has_api_key: bool) -> Mapping[str, Check]:
    """Return the rules that types cannot express.

    Cached because all requests of one millisecond share them.
    """
    check_timestamp = partial(parse_timestamp, received_ms=received_ms)
    return (
        {"timestamp": check_timestamp, **VISITOR_CHECKS}
        if has_api_key
        else {"timestamp": check_timestamp}
    )
