"""Decodes the body of an endpoint whose errors have one message, whatever is wrong with it."""

from typing import TypeVar

import msgspec

from headrace.base.errors import InvalidBody

_BodyT = TypeVar("_BodyT")


def decode_json(body: bytes, body_type: type[_BodyT]) -> _BodyT:
    """Decode a body. Raises `InvalidBody` for what is no JSON of this type or nested too deeply."""
    try:
        return msgspec.json.decode(body, type=body_type)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidBody from error
