"""`headrace query` in a separate process: its whole output."""

import json
import re
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from headrace.adapters.store.dialect.sql_text import write_sql
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import CHDB_DIALECT, SERVER_DIALECT, Dialect
from headrace.query.sql.compile import compile_query
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query
from testing.servers.ports import free_port
from testing.service import HEADRACE, Json, Service, clean_environment
from tests.e2e.query.queries import body, event, query, send, where

RANGE = ("--from", "2025-03-01", "--to", "2025-03-31")
BY_PATH = (
    *("--table", "events", "--select", "count as views"),
    *("--select", "uniq(anonymous_id) as visitors", "--select", "avg(value) as mean"),
    *("--group-by", "path"),
)
COUNT: Mapping[str, Json] = {
    "table": "events",
    "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
}


class Done(NamedTuple):
    """The exit code and output of a command, with variable numbers masked."""

    code: int
    out: str
    err: str = ""


RunQuery = Callable[..., Done]


def run(*arguments: str, command: str = "query", given: str = "", **variables: str) -> Done:
    unset = dict.fromkeys(("HEADRACE_WEBSITE_ID", "HEADRACE_API_KEY"), "")
    done = subprocess.run(
        [HEADRACE, command, *arguments],
        input=given.encode(),
        capture_output=True,
        env=clean_environment({**unset, **variables}),
        timeout=60,
        check=False,
    )
    out = re.sub(r"\d+\.\d ms", "N ms", done.stdout.decode())
    out = re.sub(r'"(executionTime|rowsRead|bytesRead)":[\d.]+', r'"\1":0', out)
    out = re.sub(r'"cached":\w+,"watermark":"[^"]+"', '"cached":false,"watermark":"NOW"', out)
    return Done(done.returncode, re.sub(r'"req_[^"]+"', '"ID"', out), done.stderr.decode())


@pytest.fixture(scope="module")
def shop(service: Service) -> str:
    """A website with five events in March 2025."""
    website = service.website()
    send(
        service,
        website,
        event(path="/blog/a", anonymousId="ann", properties={"value": 1.5, "seats": 3}),
        event(path="/blog/a", anonymousId="bob", properties={"seats": "3"}),
        event(path="/blog/b", anonymousId="ann", properties={"value": 10}),
        event(path="/", anonymousId="ann", at="2025-03-31T22:30:00Z"),
        event("page, view", path="/über"),
    )
    return website


@pytest.fixture
def run_query(service: Service, shop: str) -> RunQuery:
    """Runs the command on the events of March 2025 with a key that has read scope."""

    def run_service_query(*arguments: str, **options: str) -> Done:
        return run(
            *arguments,
            HEADRACE_URL=service.url,
            HEADRACE_WEBSITE_ID=shop,
            HEADRACE_API_KEY=service.master.secret,
            **options,
        )

    return run_service_query


def test_result_is_an_aligned_table(run_query: RunQuery) -> None:
    assert run_query(*BY_PATH, *RANGE) == Done(
        0,
        "path     views  visitors  mean\n"
        "/blog/a      2         2   1.5\n"
        "/            1         1\n"
        "/blog/b      1         1    10\n"
        "/über        1         0\n"
        "\n"
        "4 rows, N ms\n",
    )


def test_every_option_reaches_the_service(run_query: RunQuery) -> None:
    assert run_query(
        *("--table", "events", "--select", "count as n", "--group-by", "path,event_name"),
        *("--where", "path != /", "--where", "path starts_with '/'"),
        *("--order-by", "path desc", "--limit", "1", "--offset", "1"),
        *RANGE,
    ) == Done(
        0,
        "path     event_name  n\n/blog/b  click       1\n\n1 row, N ms, more rows exist\n",
    )
    assert run_query(
        *("--table", "events", "--granularity", "daily", "--fill", "--timezone", "Europe/Berlin"),
        *("--from", "2025-03-31", "--to", "2025-04-01"),
    ) == Done(
        0, "date        count_all\n2025-03-31          0\n2025-04-01          1\n\n2 rows, N ms\n"
    )


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("country = ''", 5),
        ("path in /blog/a,/blog/b", 3),
        ("path not in ('/blog/a', '/')", 2),
        ("value >= 1.5", 2),
        ("value<10", 1),
        ("properties.seats = 3", 1),
        ("properties.seats = '3'", 1),
        ("is_bot = false", 5),
        ("time > 2025-03-31", 1),
        ("event_name = 'page, view'", 1),
        ("path contains ü", 1),
    ],
)
def test_condition_is_translated_to_a_filter(
    run_query: RunQuery, condition: str, count: int
) -> None:
    assert run_query("--table", "events", "--where", condition, *RANGE) == Done(
        0, f"count_all\n{count:>9}\n\n1 row, N ms\n"
    )


def test_empty_result_is_one_line(run_query: RunQuery) -> None:
    assert run_query("--table", "events", "--group-by", "path") == Done(0, "0 rows, N ms\n")


def test_csv_is_what_the_service_sends(run_query: RunQuery) -> None:
    assert run_query(*BY_PATH, *RANGE, "--limit", "2", "--format", "csv") == Done(
        0,
        "path,views,visitors,mean\r\n/blog/a,2,2,1.5\r\n/,1,1,\r\n",
        "headrace: more rows exist\n",
    )


def test_json_is_what_the_service_sends(run_query: RunQuery) -> None:
    done = run_query(
        "--table", "events", "--select", "sum(value) as total", *RANGE, "--format", "json"
    )
    assert (done.code, done.err, done.out.count("\n")) == (0, "", 1)
    result = json.loads(done.out)
    assert result.pop("requestId")
    assert result == {
        "success": True,
        "data": [{"total": 11.5}],
        "meta": {
            "rowCount": 1,
            "executionTime": 0,
            "limit": 1000,
            "truncated": False,
            "rowsRead": 0,
            "bytesRead": 0,
            "cached": False,
            "watermark": "NOW",
        },
    }


@pytest.mark.parametrize("full_result", [True, False], ids=["whole body", "only its query"])
@pytest.mark.parametrize("given", [True, False], ids=["standard input", "file"])
def test_query_is_read_from_a_file(
    run_query: RunQuery, tmp_path: Path, *, full_result: bool, given: bool
) -> None:
    text = json.dumps({"query": COUNT, "timezone": "UTC", "limit": 7} if full_result else COUNT)
    (tmp_path / "question.json").write_text(text)
    done = (
        run_query("-", *RANGE, given=text)
        if given
        else run_query(str(tmp_path / "question.json"), *RANGE)
    )
    assert done == Done(0, "n\n5\n\n1 row, N ms\n")


def test_public_website_needs_no_key(service: Service) -> None:
    website = service.website(public=True)
    assert run("--table", "events", "--website", website, "--url", service.url) == Done(
        0, "count_all\n        0\n\n1 row, N ms\n"
    )


REJECTED = {
    "unknown column": (
        (*BY_PATH, "--where", "pth = /"),
        'Invalid column "pth" for table "events" (did you mean "path"?)',
    ),
    "unknown table": (
        ("--table", "evnts"),
        'Invalid table "evnts" (did you mean "events"?)',
    ),
    "unknown aggregate": (
        ("--table", "events", "--select", "uniqe(path)"),
        'Invalid aggregate "uniqe" in query.selects[0] (did you mean "uniq"?)',
    ),
    "aggregate without a column": (
        ("--table", "events", "--select", "uniq"),
        'Column not aggregatable "*" in query.selects[0]: it takes only count, uniq needs a column',
    ),
    "unknown output name": (
        (*BY_PATH, "--order-by", "visitors down"),
        (
            'Invalid orderBy "visitors down" in orderBy[0]: no output has this name'
            ' (did you mean "visitors"?)'
        ),
    ),
    "impossible date": (
        ("--table", "events", "--to", "2025-02-30"),
        'Invalid endDate "2025-02-30": there is no such day',
    ),
    "limit of none": (
        ("--table", "events", "--limit", "0"),
        "Invalid limit: must be a whole number from 1",
    ),
    "unreadable group": (
        ("--table", "events", "--group-by", "path,"),
        "cannot read --group-by 'path,': a name is missing",
    ),
    "unknown website": (
        ("--table", "events", "--website", "web_unknown"),
        "Website not found",
    ),
    "invalid key": (
        ("--table", "events", "--key", "hr_wrong"),
        "Invalid API key",
    ),
    "impossible key": (
        ("--table", "events", "--key", "mr wrong"),
        "the key contains characters that API keys do not have",
    ),
    "no address": (
        ("--table", "events", "--url", "localhost:8080"),
        "'localhost:8080' is not an address such as http://127.0.0.1:8080",
    ),
}


@pytest.mark.parametrize(("arguments", "sentence"), REJECTED.values(), ids=list(REJECTED))
def test_rejected_query_is_one_sentence(
    run_query: RunQuery, arguments: tuple[str, ...], sentence: str
) -> None:
    assert run_query(*arguments) == Done(1, "", f"headrace: {sentence}\n")


def test_missing_key_and_website_are_named(service: Service, shop: str) -> None:
    command_line = ("--table", "events", "--url", service.url, "--website", shop)
    no_key = Done(
        1,
        "",
        "headrace: Authentication required: no key was given; use --key or HEADRACE_API_KEY\n",
    )
    assert [run(*command_line), run(*command_line, "--key", " ")] == [no_key, no_key]
    assert run("--table", "events", "--url", service.url) == Done(
        1, "", "headrace: no website is given: use --website or HEADRACE_WEBSITE_ID\n"
    )


def test_unreachable_service_is_named() -> None:
    port = str(free_port())
    assert run("--table", "events", "--website", "web_a", HEADRACE_PORT=port) == Done(
        1,
        "",
        f"headrace: cannot query http://127.0.0.1:{port}: connection refused; is the service "
        "running?\n",
    )


def test_https_address_of_a_plain_port_says_what_to_try(service: Service) -> None:
    url = f"https://127.0.0.1:{service.port}"
    done = run("--table", "events", "--website", "web_a", "--key", "hr_a", "--url", url)
    assert done == Done(
        1,
        "",
        f"headrace: cannot query {url}: it does not use TLS; if no proxy with TLS is in front of "
        "the service, its address begins with http://\n",
    )


def test_certificate_that_is_not_trusted_is_named(tmp_path: Path) -> None:
    with tls_server(tmp_path) as url:
        done = run("--table", "events", "--website", "web_a", "--key", "hr_a", "--url", url)
    assert done == Done(
        1,
        "",
        f"headrace: cannot query {url}: its certificate is not accepted (self-signed certificate); "
        "SSL_CERT_FILE can name a file of trusted certificates\n",
    )


@pytest.mark.parametrize("host", ["headrace..example", ".", f"{'h' * 64}.example"])
def test_host_that_no_name_can_have_is_no_address(host: str) -> None:
    url = f"http://{host}:8080"
    assert run("--table", "events", "--website", "web_a", "--url", url) == Done(
        1, "", f"headrace: '{url}' is not an address such as http://127.0.0.1:8080\n"
    )


@pytest.mark.parametrize("tls", ["of the library", "that resets", "that answers in HTTP"])
def test_http_address_of_a_tls_port_says_what_to_try(tmp_path: Path, tls: str) -> None:
    with plain_address(tmp_path, tls) as url:
        done = run("--table", "events", "--website", "web_a", "--key", "hr_a", "--url", url)
    reason = (
        f"{url} answered 400; it is not the address of a Headrace service"
        if tls == "that answers in HTTP"
        else f"cannot query {url}: it ended the connection"
    )
    hint = "if the server uses TLS, its address begins with https://"
    assert done == Done(1, "", f"headrace: {reason}; {hint}\n")


@contextmanager
def plain_address(directory: Path, tls: str) -> Generator[str]:
    """Yield an `http://` address of a server with TLS."""
    if tls == "of the library":
        with tls_server(directory) as url:
            yield url.replace("https:", "http:")
        return
    with foreign_server() as url:
        yield f"{url}/{'tls' if tls == 'that answers in HTTP' else 'reset'}"


@contextmanager
def tls_server(directory: Path) -> Generator[str]:
    """Yield the address of a server with a certificate that it has signed itself."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-newkey", "ec"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with foreign_server(context) as url:
        yield url.replace("http:", "https:")


class ForeignServer(BaseHTTPRequestHandler):
    """A server that is not Headrace, or a proxy in front of it."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.path.split("/")[1]:
            case "moved":
                self._answer(301, b"", Location="https://example.com/v1/query/custom")
            case "busy":
                self._answer(429, b'{"error":"Rate limit exceeded"}', **{"Retry-After": "9"})
            case "closed":
                until = "Wed, 21 Oct 2026 07:28:00 GMT"
                self._answer(503, b'{"error":"Service unavailable"}', **{"Retry-After": until})
            case "vague":
                self._answer(503, b'{"error":"Service unavailable"}', **{"Retry-After": "soon"})
            case "tls":
                self._answer(400, b"The plain HTTP request was sent to HTTPS port")
            case "reset":
                reset = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            case "page":
                self._answer(200, b"<html></html>")
            case "short":
                self._answer(200, b"{}", **{"Content-Length": "100"})
            case "cut":
                self._answer(502, b"<html>", **{"Content-Length": "100"})
            case other:
                self._answer(404 if other == "missing" else 502, b"<html>an error</html>")

    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815 - names of the library

    def _answer(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # its parameters are not used
        """Log nothing."""


@contextmanager
def foreign_server(context: ssl.SSLContext | None = None) -> Generator[str]:
    with HTTPServer(("127.0.0.1", 0), ForeignServer) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


FOREIGN_RESPONSES = {
    "moved": "{url} answered 301 and points to https://example.com/v1/query/custom; it is not the "
    "address of a Headrace service",
    "busy": "Rate limit exceeded; it works again in 9 s",
    "closed": "Service unavailable; it works again on Wed, 21 Oct 2026 07:28:00 GMT",
    "vague": "Service unavailable",
    "page": "the response is not one of a Headrace service: write {address} unless a proxy serves "
    "Headrace below /page",
    "missing": "{url} answered 404; it is not the address of a Headrace service: write {address} "
    "unless a proxy serves Headrace below /missing",
    "short": "cannot query {url}: IncompleteRead(2 bytes read, 98 more expected)",
    "cut": "cannot query {url}: IncompleteRead(6 bytes read, 94 more expected)",
    "gateway": "{url} answered 502; it is not the address of a Headrace service",
}


@pytest.mark.parametrize(
    ("directory", "sentence"), FOREIGN_RESPONSES.items(), ids=list(FOREIGN_RESPONSES)
)
def test_unexpected_response_is_one_sentence(directory: str, sentence: str) -> None:
    with foreign_server() as address:
        url = f"{address}/{directory}"
        done = run("--table", "events", "--website", "web_a", "--key", "hr_a", "--url", url)
    assert done == Done(1, "", f"headrace: {sentence.format(url=url, address=address)}\n")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("query", ("--table", "events", "--save", "daily")),
        ("saved", ("list",)),
        ("saved", ("list", "--json")),
        ("saved", ("show", "daily")),
        ("saved", ("delete", "daily")),
        ("saved", ("run", "daily")),
    ],
)
def test_html_page_is_no_saved_query_but_one_sentence(
    command: str, arguments: tuple[str, ...]
) -> None:
    with foreign_server() as address:
        target = ("--website", "web_a", "--key", "hr_a", "--url", f"{address}/page")
        done = run(*arguments, *target, command=command)
    sentence = FOREIGN_RESPONSES["page"].format(address=address)
    assert done == Done(1, "", f"headrace: {sentence}\n")


@pytest.mark.parametrize("url", ["{}", "{}/", "{}//"])
def test_address_of_the_page_is_refused_with_the_one_to_write(service: Service, url: str) -> None:
    page = url.format(f"{service.url}/app")
    done = run("--table", "events", "--website", "web_a", "--key", "hr_a", "--url", page)
    assert done == Done(
        1,
        "",
        f"headrace: {page} answered 405; it is not the address of a Headrace service: write "
        f"{service.url} unless a proxy serves Headrace below {page.removeprefix(service.url)}\n",
    )


def compiled(website: str) -> CompiledQuery:
    """Return the compiled statement of the query that the tests explain."""
    sent_query = query(filters=[where("title", "eq", "a\n-- b")], group_by=["path"])
    return _compile(sent_query, website, CHDB_DIALECT)


def _compile(sent_query: Json, website: str, dialect: Dialect) -> CompiledQuery:
    request = decode_query(json.dumps(body(sent_query)).encode())
    return compile_query(check_query(request, WebsiteId(website), now_ms=0), dialect)


@pytest.mark.parametrize(
    ("variables", "dialect"),
    [
        pytest.param({}, CHDB_DIALECT, id="chDB"),
        pytest.param(
            {"HEADRACE_CLICKHOUSE_URL": "clickhouse://u:p@store.invalid/headrace"},
            SERVER_DIALECT,
            id="ClickHouse",
        ),
    ],
)
def test_explain_compiles_for_the_store_of_the_settings(
    variables: Mapping[str, str], dialect: Dialect
) -> None:
    done = run(
        *("--table", "sessions", "--select", "count as n", "--group-by", "country"),
        *(*RANGE, "--explain", "--format", "json"),
        **variables,
    )
    sent_query = query(table="sessions", group_by=["country"])
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["sql"] == _compile(sent_query, "WEBSITE_ID", dialect).sql


def test_explain_shows_the_sql_without_a_service() -> None:
    command_line = (
        *("--table", "events", "--select", "count as n", "--where", "title = a\n-- b"),
        *("--group-by", "path", *RANGE, "--explain"),
    )
    assert run(*command_line) == Done(0, write_sql(compiled("WEBSITE_ID")), "")
    expected = compiled("web_a")
    done = run(*command_line, "--format", "json", "--website", "web_a")
    assert (done.code, done.err, json.loads(done.out)) == (
        0,
        "",
        {
            "sql": expected.sql,
            "parameters": expected.parameters,
            "columns": {"c0": "path", "c1": "n"},
        },
    )


@pytest.mark.parametrize("arguments", [("--explain",), ("--explain", "--format", "json")])
def test_output_to_a_full_disk_is_one_sentence(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [HEADRACE, "query", *BY_PATH, *RANGE, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            timeout=60,
            check=False,
        )
    assert (
        done.stderr.decode() == "headrace: cannot write the output: no space left on the device\n"
    )
    assert done.returncode == 1


def test_explain_rejects_what_the_service_rejects() -> None:
    assert run("-", "--explain", given='{"table": "events", "select": []}') == Done(
        1,
        "",
        'headrace: Invalid request body: unknown key "select" (did you mean "selects"?)\n',
    )
    assert run("--table", "events", "--explain", "--format", "csv") == Done(
        1, "", "headrace: --explain has no CSV format: use --format table or json\n"
    )
