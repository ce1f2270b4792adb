"""The files of the browser tracker over HTTP."""

import gzip
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import brotli as untyped_brotli  # type: ignore[import-untyped]  # brotli has no types
import pytest

from headrace.base.settings import Settings
from headrace.http.tracker.files import read_pinned_files, snippet
from tests.contract.http.fakes import REQUEST_ID, Harness

DECODERS: dict[str | None, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "br": cast("Any", untyped_brotli).decompress,
    None: bytes,
}
SCRIPTS = ["/headrace.js", "/headrace-extras.js", "/headrace-details.js"]


@pytest.mark.parametrize("path", SCRIPTS)
def test_script_may_be_used_by_any_page_and_kept_for_an_hour(path: str) -> None:
    response = Harness().call("GET", path)

    assert response.status == 200
    headers = dict(response.headers)
    assert headers.pop("etag").endswith('-identity"')
    assert headers == {
        "content-type": "text/javascript; charset=utf-8",
        "sourcemap": f"{path[1:]}.map",
        "access-control-allow-origin": "*",
        "cross-origin-resource-policy": "cross-origin",
        "cache-control": "public, max-age=3600, stale-while-revalidate=86400",
        "vary": "Accept-Encoding",
        "x-content-type-options": "nosniff",
        "x-request-id": REQUEST_ID,
        "content-length": str(len(response.body)),
    }


@pytest.mark.parametrize("path", SCRIPTS)
@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate", "gzip"),
        ("br", "br"),
        ("br;q=0, gzip", "gzip"),
        ("zstd", None),
        ("*;q=0", None),
    ],
)
def test_script_is_the_same_in_every_encoding(
    path: str, accepted: str, encoding: str | None
) -> None:
    plain = Harness().call("GET", path).body

    response = Harness().call("GET", path, headers={"Accept-Encoding": accepted})

    assert response.headers.get("content-encoding") == encoding
    assert DECODERS[encoding](response.body) == plain


def test_script_with_the_tag_that_a_page_has_is_not_sent_again() -> None:
    harness = Harness()
    etag = harness.call("GET", "/headrace.js").headers["etag"]

    response = harness.call("GET", "/headrace.js", headers={"If-None-Match": f'"other", W/{etag}'})

    assert (response.status, response.body) == (304, b"")
    assert response.headers["etag"] == etag
    assert "content-length" not in response.headers
    changed = harness.call("GET", "/headrace.js", headers={"If-None-Match": '"other"'})
    assert changed.status == 200


@pytest.mark.parametrize("path", SCRIPTS)
def test_source_map_names_the_sources(path: str) -> None:
    source_map = json.loads(Harness().call("GET", f"{path}.map").body)

    assert any(source.endswith("outbox.ts") for source in source_map["sources"]) is (
        path == "/headrace.js"
    )


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:8]


def integrity_of(body: bytes, algorithm: str = "sha384") -> str:
    return f"{algorithm}-{b64encode(hashlib.new(algorithm, body).digest()).decode()}"


@pytest.mark.parametrize("path", SCRIPTS)
def test_version_of_a_script_may_be_kept_for_ever(path: str) -> None:
    harness = Harness()
    plain = harness.call("GET", path).body

    response = harness.call("GET", path.replace(".js", f".{digest_of(plain)}.js"))

    assert (response.status, response.body) == (200, plain)
    headers = dict(response.headers)
    assert headers.pop("etag").endswith('-identity"')
    assert headers == {
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "public, max-age=31536000, immutable",
        "access-control-allow-origin": "*",
        "cross-origin-resource-policy": "cross-origin",
        "vary": "Accept-Encoding",
        "x-content-type-options": "nosniff",
        "x-request-id": REQUEST_ID,
        "content-length": str(len(plain)),
    }


@pytest.mark.parametrize("path", ["/headrace.00000000.js", "/headrace-extras.x.js"])
def test_version_that_no_release_had_is_404(path: str) -> None:
    response = Harness().call("GET", path)

    assert response.status == 404
    assert response.json == {
        "status": "error",
        "message": "Not found",
        "code": "NOT_FOUND",
        "requestId": REQUEST_ID,
    }


def test_manifest_says_how_to_pin_the_script_that_is_served() -> None:
    harness = Harness()
    plain = harness.call("GET", "/headrace.js").body

    response = harness.call("GET", "/headrace.json")

    assert response.json == {
        "path": f"/headrace.{digest_of(plain)}.js",
        "integrity": integrity_of(plain),
    }
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["access-control-allow-origin"] == "*"
    assert snippet("https://x.example", "/headrace.js", "web_1") == (
        f'<script defer src="https://x.example{response.json["path"]}" '
        f'integrity="{response.json["integrity"]}" crossorigin="anonymous" '
        'data-client-id="web_1"></script>'
    )


def test_script_loads_the_version_of_the_second_file_that_is_served() -> None:
    harness = Harness()
    core = harness.call("GET", "/headrace.js").body.decode()
    extras = harness.call("GET", "/headrace-extras.js").body

    names = re.findall(r'"(headrace-extras\.[^"]+)"', core)

    assert names == [f"headrace-extras.{digest_of(extras)}.js"]
    assert f'"{integrity_of(extras, "sha256")}"' in core


def test_setting_moves_all_files_to_another_folder() -> None:
    harness = Harness(Settings(tracker_path="/scripts/stats.js"))
    script = harness.call("GET", "/scripts/stats.js")
    extras = harness.call("GET", "/scripts/headrace-extras.js")
    pinned = harness.call("GET", "/headrace.json").json["path"]

    assert script.status == extras.status == 200
    assert script.headers["sourcemap"] == "stats.js.map"
    assert pinned == f"/scripts/stats.{digest_of(script.body)}.js"
    for path in (
        "/scripts/stats.js.map",
        pinned,
        "/scripts/headrace-extras.js.map",
        "/scripts/headrace-details.js",
        "/scripts/headrace-details.js.map",
        f"/scripts/headrace-extras.{digest_of(extras.body)}.js",
    ):
        assert harness.call("GET", path).status == 200, path
    assert [harness.call("GET", path).status for path in SCRIPTS] == [404, 404, 404]


def test_versions_of_earlier_releases_are_kept_and_damaged_ones_are_not_served(
    tmp_path: Path,
) -> None:
    old, new = b"old();", b"new();"
    (tmp_path / "headrace.js").write_bytes(new)
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / f"headrace.{digest_of(old)}.js").write_bytes(old)
    (tmp_path / "releases" / "headrace.00000000.js").write_bytes(b"damaged();")
    (tmp_path / "releases" / f"headrace-extras.{digest_of(old)}.js").write_bytes(old)

    versions = read_pinned_files("headrace.js", tmp_path)

    assert {digest: file.bodies["identity"] for digest, file in versions.items()} == {
        digest_of(new): new,
        digest_of(old): old,
    }
