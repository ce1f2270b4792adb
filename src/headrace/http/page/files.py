"""The files of the page, each in the content encodings in which it is sent."""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from msgspec import Struct

from headrace.http.compression import encode_body

MEDIA_TYPES: Final[Mapping[str, str]] = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
"""What is served, by the ending of the name."""

_PACKAGE: Final = "headrace.http.page"
_INDEX: Final = "index.html"
_ASSETS: Final = b"/app/assets/"


class PageFile(Struct, frozen=True):
    """One file: its media type, and its bytes by content encoding."""

    media_type: str
    bodies: Mapping[str, bytes]


class PageFiles:
    """All files of the page. `digest` changes with any of them."""

    def __init__(self, root: Traversable | None = None) -> None:
        root = root or files(_PACKAGE)
        self._assets = dict(_read_assets(root))
        index = root.joinpath(_INDEX).read_bytes()
        content = hashlib.sha256(index)
        for name in sorted(self._assets):
            content.update(b"\0%s\0%s" % (name.encode(), self._assets[name]))
        self.digest = content.hexdigest()[:20]
        self.index = _encoded(
            "text/html; charset=utf-8",
            index.replace(_ASSETS, b"%s%s/" % (_ASSETS, self.digest.encode())),
        )
        self.asset = cache(self._asset)

    def _asset(self, name: str) -> PageFile | None:
        """Return a file by its path, compressed at its first request; None for an unknown one."""
        body = self._assets.get(name)
        return None if body is None else _encoded(MEDIA_TYPES[name.rpartition(".")[2]], body)


def _read_assets(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = prefix + entry.name
        if entry.is_dir():
            yield from _read_assets(entry, f"{name}/")
        elif entry.name.rpartition(".")[2] in MEDIA_TYPES:
            yield name, entry.read_bytes()


def _encoded(media_type: str, body: bytes) -> PageFile:
    return PageFile(media_type, encode_body(body))
