"""Ids and secrets of the directory, made of random bytes."""

import math
from collections.abc import Callable

Randomness = Callable[[int], bytes]
"""Returns a number of random bytes that are suitable for secrets."""

PREFIX_LENGTH = 9
"""Characters of a key that are stored and shown: `hr_` and six more."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_BYTES = 12
_SECRET_BYTES = 32


def new_id(kind: str, randomness: Randomness) -> str:
    """Return an id such as `web_…`: its kind (or `org`, `key`, `ses`) and sixteen characters."""
    return f"{kind}_{_encode(randomness(_ID_BYTES))}"


def new_secret(randomness: Randomness) -> str:
    """Return the secret of an API key: `hr_` and 42 characters."""
    return f"hr_{_encode(randomness(_SECRET_BYTES))}"


def new_session_secret(randomness: Randomness) -> str:
    """Return the secret of a session: `hs_` and 42 characters."""
    return f"hs_{_encode(randomness(_SECRET_BYTES))}"


def new_code(randomness: Randomness) -> str:
    """Return a sign-in code: 42 characters."""
    return _encode(randomness(_SECRET_BYTES))


def new_query_token(randomness: Randomness) -> str:
    """Return the token of a saved query: `hq_` and 42 characters."""
    return f"hq_{_encode(randomness(_SECRET_BYTES))}"


def _encode(octets: bytes) -> str:
    """Encode random bytes in base 62, in a fixed length (12 bytes: 16 characters; 32 bytes: 42).

    Unlike Base64, a double click selects all of it, and it never looks like a command's option.
    """
    number = int.from_bytes(octets)
    text = ""
    for _ in range(math.floor(len(octets) * 8 / math.log2(len(_DIGITS)))):
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return text
