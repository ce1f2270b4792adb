"""Decodes a request body and applies every rule that needs no credentials."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from msgspec import Struct

from headrace.base.errors import InvalidBody
from headrace.base.json_size import JsonLimits, check_json_size
from headrace.ingest.receive.decoding.decode import (
    IngestPath,
    WireItem,
    decode_items,
    list_field_errors,
    try_decode_items,
)
from headrace.ingest.receive.decoding.timestamps import parse_timestamp, parse_timestamps
from headrace.ingest.receive.decoding.validation_errors import Check
from headrace.ingest.receive.enrich import VISITOR_CHECKS, check_visitors


class BodyLimits(Struct, frozen=True):
    """The most that one body may have: items, JSON objects, arrays and keys, decoded bytes."""

    max_items: int
    json: JsonLimits = JsonLimits()
    max_decoded_bytes: int = 20_971_520


class DecodedRequest(Struct, frozen=True):
    """A body that satisfies every rule that needs no credentials.

    `timestamps_ms` is parallel to `items`. `reports_visitors` says whether items of a request with
    a key may have an `ip` or `userAgent`.
    """

    received_ms: int
    items: Sequence[WireItem]
    timestamps_ms: Sequence[int]
    reports_visitors: bool

    def website_ids(self) -> Sequence[str | None]:
        """Return the website that each item names, None for none."""
        return [item.website_id for item in self.items]

    def has_anonymous_ids(self) -> bool:
        """Return whether every item has an anonymous id of its own."""
        return all(item.anonymous_id for item in self.items)


def decode_request(
    endpoint: IngestPath, body: bytes, *, received_ms: int, has_api_key: bool, limits: BodyLimits
) -> DecodedRequest:
    """Decode a body. Raises `InvalidBody` or `PayloadTooLarge`; see `decode_items`."""
    check_json_size(body, limits.json)
    checks = _field_checks(received_ms, has_api_key=has_api_key)
    items = decode_items(endpoint, body, max_items=limits.max_items, checks=checks)
    try:
        return _check_items(items, received_ms=received_ms, has_api_key=has_api_key)
    except ValueError as error:
        raise InvalidBody(list_field_errors(endpoint, body, checks=checks)) from error


def try_decode_request(
    endpoint: IngestPath, body: bytes, *, received_ms: int, has_api_key: bool, limits: BodyLimits
) -> DecodedRequest | None:
    """Decode a body, or return None for one that is invalid or unusual; see `try_decode_items`.

    Raises `PayloadTooLarge`.
    """
    check_json_size(body, limits.json)
    items = try_decode_items(endpoint, body, max_items=limits.max_items)
    if items is None:
        return None
    try:
        return _check_items(items, received_ms=received_ms, has_api_key=has_api_key)
    except ValueError:
        return None


def _check_items(
    items: Sequence[WireItem], *, received_ms: int, has_api_key: bool
) -> DecodedRequest:
    """Apply the rules that types cannot express. Raises `ValueError` for the first broken one."""
    sent = [item.timestamp for item in items]
    timestamps_ms = parse_timestamps(sent, received_ms=received_ms)
    reports_visitors = has_api_key and check_visitors(items)
    return DecodedRequest(received_ms, items, timestamps_ms, reports_visitors)


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
