"""Reads what a body selects: the rows to erase, or to show."""

from collections.abc import Set as AbstractSet
from typing import Any

from headrace.base.errors import InvalidBody
from headrace.erasure.selection import (
    SELECTOR_FIELDS,
    WITH_VISITORS,
    InvalidSelection,
    Selection,
    parse_selection,
)
from headrace.http.reading.json_body import decode_json


def read_selection(
    body: bytes, *, options: AbstractSet[str] = frozenset()
) -> tuple[Selection, dict[str, Any]]:
    """Return what a body selects, and its fields, of which some may be `options` of the endpoint.

    Raises `InvalidBody`.
    """
    fields = decode_json(body, dict[str, Any])
    if fields.keys() - SELECTOR_FIELDS.keys() - {WITH_VISITORS} - options:
        raise InvalidBody
    try:
        return parse_selection(fields), fields
    except InvalidSelection as error:
        raise InvalidBody from error
