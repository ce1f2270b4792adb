"""Ids and secrets of the directory, made of random bytes."""

import math
from collections.abc import Callable

Randomness = Callable[[int], bytes]
"""Returns that many random bytes, good enough for secrets."""

PREFIX_LENGTH = 9
"""Characters of a key that people may see: `hr_` and six more."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_BYTES = 12
_SECRET_BYTES = 32


def new_id(kind: str, randomness: Randomness) -> str:
    """Return an id such as `web_…`: its kind (`web`, `org`, `key`) and sixteen characters."""
    return f"{kind}_{_encode(randomness(_ID_BYTES))}"


def new_secret(randomness: Randomness) -> str:
    """Return what a caller shows as its key: `hr_` and 42 characters."""
    return f"hr_{_encode(randomness(_SECRET_BYTES))}"


def _encode(octets: bytes) -> str:
    """Write random bytes with letters and digits only, in a fixed length (12 bytes: 16; 32: 42).

    Unlike Base64 a double click selects it whole, and it never looks like an option of a command.
    """
    number = int.from_bytes(octets)
    text = ""
    for _ in range(math.floor(len(octets) * 8 / math.log2(len(_DIGITS)))):
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return text
