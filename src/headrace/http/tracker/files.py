"""The files of the tracker, each in the content encodings in which it is sent."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from msgspec import Struct

from headrace.http.compression import encode_body

SCRIPT: Final = "headrace.js"
EXTRAS: Final = "headrace-extras.js"
"""The second file, which the first one loads from its own folder, by hash and integrity value."""

DETAILS: Final = "headrace-details.js"
"""The third file, which pages load themselves."""

_PACKAGE: Final = "headrace.http.tracker"
_RELEASES: Final = "releases"
_HASH_DIGITS: Final = 8  # `build.mjs` writes as many into the core


class TrackerFile(Struct, frozen=True):
    """One file: its bytes by content encoding, and the tag that changes with them."""

    bodies: Mapping[str, bytes]
    etag: str


class PinnedScript(Struct, frozen=True):
    """The script as a page pins it: the path with its hash, and its integrity value (SRI)."""

    path: str
    integrity: str


def read_tracker_file(name: str) -> TrackerFile:
    """Read a file of the package, and compress it as much as possible."""
    return _compress(files(_PACKAGE).joinpath(name).read_bytes())


def read_pinned_files(name: str, folder: Traversable | None = None) -> Mapping[str, TrackerFile]:
    """Return all versions of a script by hash: that of this release, and those of earlier ones.

    A page that pins a version goes on working when the service is updated: `node build.mjs
    --release` adds the files of a release to the folder, and none is ever deleted.
    """
    folder = folder or files(_PACKAGE)
    current = folder.joinpath(name).read_bytes()
    versions = {_hash(current): current}
    releases = folder.joinpath(_RELEASES)
    for file in releases.iterdir() if releases.is_dir() else ():
        body = file.read_bytes()
        if file.name == pinned_path(name, _hash(body)):
            versions[_hash(body)] = body
    return {digest: _compress(body) for digest, body in versions.items()}


def pinned_path(path: str, digest: str) -> str:
    """Return the path of a version of a script: `/headrace.js` becomes `/headrace.DIGEST.js`."""
    return f"{path.removesuffix('.js')}.{digest}.js"


def pinned_script(tracker_path: str) -> PinnedScript:
    """Return how pages pin the script of this release, which the service has at `tracker_path`."""
    body = files(_PACKAGE).joinpath(SCRIPT).read_bytes()
    integrity = b64encode(hashlib.sha384(body).digest()).decode()
    return PinnedScript(pinned_path(tracker_path, _hash(body)), f"sha384-{integrity}")


def snippet(url: str, tracker_path: str, website_id: str) -> str:
    """Return what the head of a page needs, for a service at `url`."""
    script = pinned_script(tracker_path)
    return (
        f'<script defer src="{url}{script.path}" integrity="{script.integrity}" '
        f'crossorigin="anonymous" data-client-id="{website_id}"></script>'
    )


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:_HASH_DIGITS]


def _compress(body: bytes) -> TrackerFile:
    return TrackerFile(encode_body(body), hashlib.sha256(body).hexdigest()[:32])
