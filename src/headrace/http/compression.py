"""Compresses the files of the page and of the tracker, for each Content-Encoding."""

import gzip
from collections.abc import Mapping
from typing import Any, Final, cast

import brotli as untyped_brotli  # type: ignore[import-untyped]  # brotli has no types

IDENTITY: Final = "identity"
"""The content encoding of bytes as they are."""

_BROTLI = cast("Any", untyped_brotli)


def encode_body(body: bytes) -> Mapping[str, bytes]:
    """Return the bytes of a file by content encoding, compressed as much as possible."""
    return {IDENTITY: body, "br": _BROTLI.compress(body), "gzip": gzip.compress(body, 9, mtime=0)}
