"""The files of the tracker, each in the content encodings in which it is sent."""

import gzip
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final, cast

import brotli as untyped_brotli  # type: ignore[import-untyped]  # brotli has no types
from msgspec import Struct

IDENTITY: Final = "identity"

_PACKAGE: Final = "headrace.http.tracker"
_BROTLI = cast("Any", untyped_brotli)


class TrackerFile(Struct, frozen=True):
    """One file: its bytes by content encoding, and the tag that changes with them."""

    bodies: Mapping[str, bytes]
    etag: str


def read_tracker_file(name: str) -> TrackerFile:
    """Read a file of the package, and compress it as far as possible."""
    body = files(_PACKAGE).joinpath(name).read_bytes()
    return TrackerFile(
        {
            IDENTITY: body,
            "br": _BROTLI.compress(body),
            "gzip": gzip.compress(body, 9, mtime=0),
        },
        hashlib.sha256(body).hexdigest()[:32],
    )
