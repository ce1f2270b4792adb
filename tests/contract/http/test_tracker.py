"""The files of the browser tracker over HTTP."""

import gzip
import json
from collections.abc import Callable
from typing import Any, cast

import brotli as untyped_brotli  # type: ignore[import-untyped]  # brotli has no types
import pytest

from tests.contract.http.fakes import REQUEST_ID, Harness

DECODERS: dict[str | None, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "br": cast("Any", untyped_brotli).decompress,
    None: bytes,
}
SCRIPTS = ["/headrace.js", "/headrace-extras.js"]


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
