"""Names the subject of an erasure by a keyed hash, from which nobody reads the identifier.

The hash is HMAC-SHA-256 (RFC 2104) under a key that only this data directory has. Without the key
a list of likely identifiers cannot be tried.
"""

import hmac
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from headrace.model.erasure import Selector, SelectorKind, Subject
from headrace.model.plan import FilterScalar

_SEPARATOR = "\0"
"""No text of a client contains it."""

_BLOCK_BYTES = 64
_INNER_PAD = 0x36
_OUTER_PAD = 0x5C


class HashPrefixes(Struct, frozen=True):
    """The two blocks of bytes with which a store computes the same hash of its own columns.

    The digest of a text is SHA-256(outer, SHA-256(inner, text)).
    """

    inner: bytes
    outer: bytes


def subject_of(key: bytes, website_id: str, selector: Selector) -> Subject:
    """Return the subject of a selector."""
    value = (
        msgspec.json.encode([selector.key, _canonical(selector.value)]).decode()
        if selector.kind is SelectorKind.PROPERTY
        else str(selector.value)
    )
    message = _context(website_id, selector.kind) + value.encode()
    return Subject(selector.kind, hmac.digest(key, message, "sha256").hex())


def subjects_of(key: bytes, website_id: str, selectors: Iterable[Selector]) -> tuple[Subject, ...]:
    """Return the subjects of selectors, in their order."""
    return tuple(subject_of(key, website_id, selector) for selector in selectors)


def hash_prefixes(key: bytes, website_id: str, kind: SelectorKind) -> HashPrefixes:
    """Return what a store needs to compute the subjects of texts. `key` has at most 64 bytes."""
    block = key.ljust(_BLOCK_BYTES, b"\0")
    return HashPrefixes(
        bytes(byte ^ _INNER_PAD for byte in block) + _context(website_id, kind),
        bytes(byte ^ _OUTER_PAD for byte in block),
    )


def _canonical(value: FilterScalar) -> FilterScalar:
    """Return the one form of equal numbers: a selector of 5 selects 5.0 too, and 5.0 selects 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _context(website_id: str, kind: SelectorKind) -> bytes:
    """Return what keeps equal values of other websites and kinds apart."""
    return f"{website_id}{_SEPARATOR}{kind.value}{_SEPARATOR}".encode()
