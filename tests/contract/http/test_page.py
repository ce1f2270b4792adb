"""The page over HTTP: its files, its policy, and the way to it."""

import re

import pytest

from tests.contract.http.fakes import REQUEST_ID, Harness
from tests.contract.http.test_tracker import DECODERS

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


def assets(index: bytes) -> list[str]:
    return re.findall(r'(?:src|href)="(/app/assets/[^"]+)"', index.decode())


@pytest.mark.parametrize("path", ["/app/", "/app/explore", "/app/errors/an%20error", "/app/x/y"])
def test_every_path_of_the_page_shows_it_under_its_policy(path: str) -> None:
    response = Harness().call("GET", path)

    headers = dict(response.headers)
    etag = headers.pop("etag")
    assert re.fullmatch(r'"[0-9a-f]{20}-identity"', etag)
    assert response.status == 200
    assert headers == {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": POLICY,
        "cross-origin-opener-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
        "vary": "Accept-Encoding",
        "x-content-type-options": "nosniff",
        "x-request-id": REQUEST_ID,
        "content-length": str(len(response.body)),
    }
    unchanged = Harness().call("GET", path, headers={"If-None-Match": etag})
    assert (unchanged.status, unchanged.body) == (304, b"")


def test_files_are_kept_for_a_year_under_the_digest_of_all_of_them() -> None:
    linked = assets(Harness().call("GET", "/app/").body)

    responses = {path: Harness().call("GET", path) for path in linked}

    assert {path.split("/")[4] for path in linked} >= {"main.js", "page.css", "theme.js"}
    assert len({path.split("/")[3] for path in linked}) == 1
    assert {response.status for response in responses.values()} == {200}
    assert {response.headers["cache-control"] for response in responses.values()} == {
        "public, max-age=31536000, immutable"
    }


@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_file_is_the_same_in_every_encoding(encoding: str) -> None:
    [main] = [path for path in assets(Harness().call("GET", "/app/").body) if "main.js" in path]
    plain = Harness().call("GET", main).body

    response = Harness().call("GET", main, headers={"Accept-Encoding": encoding})

    assert response.headers["content-encoding"] == encoding
    assert DECODERS[encoding](response.body) == plain


@pytest.mark.parametrize(
    "path",
    [
        "/app/assets/main.js",
        "/app/assets/00000000000000000000/main.js",
        "/app/assets/DIGEST/files.py",
        "/app/assets/DIGEST/index.html",
        "/app/assets/DIGEST/../files.py",
        "/app/assets/DIGEST/",
        "/app/assets/",
    ],
)
def test_what_is_no_file_of_the_page_is_404(path: str) -> None:
    digest = assets(Harness().call("GET", "/app/").body)[0].split("/")[3]

    response = Harness().call("GET", path.replace("DIGEST", digest))

    assert (response.status, response.json["message"]) == (404, "Not found")


@pytest.mark.parametrize("accept", [None, "*/*", "text/html,application/xhtml+xml;q=0.9"])
def test_root_leads_browsers_to_the_page(accept: str | None) -> None:
    headers = {} if accept is None else {"Accept": accept}

    response = Harness().call("GET", "/", headers=headers)

    assert (response.status, response.headers["location"]) == (302, "/app/")


@pytest.mark.parametrize("accept", ["application/json", "text/html;q=0, */*"])
def test_root_has_nothing_for_clients_without_html(accept: str) -> None:
    response = Harness().call("GET", "/", headers={"Accept": accept})

    assert response.status == 406
    assert response.json == {
        "status": "error",
        "message": "Not acceptable",
        "code": "NOT_ACCEPTABLE",
        "requestId": REQUEST_ID,
    }
