"""Every code block in the guides runs unchanged and has the documented effect."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests

from testing.servers.ports import free_port
from testing.service import Service, wait_until
from tests.docs.guides import blocks

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
TIMEOUT_S = 60
CLIENT_SOURCE = Path(__file__).parents[2] / "clients" / "python" / "src"


def variables(service: Service, website: str) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "NO_PROXY": "*",
        "PYTHONPATH": str(CLIENT_SOURCE),
        "HEADRACE_URL": service.url,
        "HEADRACE_WEBSITE_ID": website,
        "TRACKING_KEY": service.key("track:events").secret,
        "HEADRACE_API_KEY": service.key("read:data").secret,
    }


def run(
    command: list[str], code: str, environment: dict[str, str], directory: Path | None = None
) -> str:
    done = subprocess.run(
        command,
        input=code,
        capture_output=True,
        text=True,
        env=environment,
        cwd=directory,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def event_names(service: Service, website: str) -> dict[Any, int]:
    return service.counts(website, "events", "event_name")


def test_curl_guide_ingests_and_queries(service: Service) -> None:
    website = service.website()
    one, batch, wrong, query = blocks("curl.md", "sh")[1:]
    environment = variables(service, website)
    assert run(["sh", "-e"], one, environment) == (
        '{"status":"success","type":"custom_event","count":1}'
    )
    both_runs = '{"status":"success","type":"custom_event","count":2}'
    assert [run(["sh", "-e"], batch, environment) for _ in range(2)] == [both_runs, both_runs]
    assert '"index":1,"field":"name"' in run(["sh", "-e"], wrong, environment)
    assert '"event_name":"purchase","events":1,"visitors":1' in run(
        ["sh", "-e"], query, environment
    )
    assert event_names(service, website) == {"signup_completed": 1, "page_view": 1, "purchase": 1}


def test_query_guide_shows_the_actual_output(service: Service, tmp_path: Path) -> None:
    environment = variables(service, service.website())
    environment["HEADRACE_API_KEY"] = service.key("read:data", "manage:data").secret
    for code in blocks("curl.md", "sh")[1:3]:
        run(["sh", "-e"], code, environment)
    printed = [
        run(["sh", "-e"], f"exec 2>&1\n{code}", environment, tmp_path)
        for code in blocks("command-line-queries.md", "sh")
    ]
    assert [re.sub(r"\d+\.\d ms", "1.2 ms", text.replace("\r", "")) for text in printed] == blocks(
        "command-line-queries.md", "text"
    )


def test_python_guide_ingests_and_queries(service: Service, tmp_path: Path) -> None:
    website = service.website()
    environment = variables(service, website)
    client, _, _, _, query, fake, requests = blocks("python.md", "python")
    printed = [
        run([sys.executable, "-"], code, environment, tmp_path)
        for code in (client, query, fake, requests)
    ]
    assert printed[:3] == ["", "[{'properties.format': 'pdf', 'exports': 1}] 1\n", ""]
    assert printed[3].startswith("200 ")
    assert event_names(service, website) == {
        "report_exported": 1,
        "row_imported": 100,
        "screen_view": 1,
        "identify": 1,
        "line_imported": 100,
    }
    assert service.counts(website, "errors", "error_type") == {"KeyError": 1}
    assert service.counts(website, "performance", "metric_name") == {"LCP": 1}


@pytest.fixture
def node_project(tmp_path: Path) -> Path:
    """A project with the client among its packages, where the outbox is made, too."""
    package = tmp_path / "node_modules" / "@headrace" / "node"
    package.parent.mkdir(parents=True)
    package.symlink_to(PROJECT / "clients" / "node")
    return tmp_path


NODE = ["node", "--input-type=module", "-"]


REQUEST = """
import asyncio
import httpx

async def request() -> None:
    transport = httpx.ASGITransport(app, client=("198.51.100.9", 1234))
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as browser:
            await browser.get("/prices", headers={"Cookie": "did=anon_9"})

asyncio.run(request())
"""


def test_python_guide_reports_from_asyncio_logs_and_web_applications(
    service: Service, tmp_path: Path
) -> None:
    website = service.website()
    environment = variables(service, website)
    _, asynchronous, logs, web, *_ = blocks("python.md", "python")
    for code in (asynchronous, logs, web + REQUEST):
        run([sys.executable, "-"], code, environment, tmp_path)
    rows = service.rows(website, "events", ["event_name", "path", "anonymous_id"])
    assert sorted(tuple(row.values()) for row in rows) == [
        ("job_done", "", ""),
        ("prices_shown", "/prices", "anon_9"),
        ("screen_view", "/prices", "anon_9"),
    ]
    errors = service.rows(website, "errors", ["message", "level", "error_type"])
    assert sorted(tuple(row.values()) for row in errors) == [
        ("3 left", "warning", ""),
        ("cannot read the stock", "error", "ValueError"),
    ]


@pytest.mark.node
@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine")
def test_node_guide_ingests_and_queries(service: Service, node_project: Path) -> None:
    website = service.website()
    environment = variables(service, website)
    events, _, _, query, single = blocks("node.md", "js")
    run(NODE, events, environment, node_project)
    run(NODE, single, environment, node_project)
    assert event_names(service, website) == {"invoice_paid": 2, "identify": 1}
    assert sorted(run(NODE, query, environment, node_project).splitlines()) == [
        "  { event_name: 'identify', events: 1 }",
        "  { event_name: 'invoice_paid', events: 2 },",
        "[",
        "]",
    ]


@pytest.mark.node
@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine")
def test_node_guide_records_requests_and_errors_of_a_server(
    service: Service, node_project: Path
) -> None:
    website = service.website()
    port = free_port()
    environment = {**variables(service, website), "PORT": str(port)}
    program = node_project / "server.mjs"
    program.write_text(blocks("node.md", "js")[1])
    server = subprocess.Popen(["node", program], env=environment, cwd=node_project)
    try:
        wait_until(lambda: _get(port, "/orders?token=secret") == 200, "the server answers")
        assert _get(port, "/fail") == 500
    finally:
        server.terminate()
        server.wait(TIMEOUT_S)
    assert service.counts(website, "events", "path") == {"/orders": 1, "/fail": 1}
    assert service.counts(website, "events", "properties.status") == {200: 1, 500: 1}
    assert service.counts(website, "errors", "message") == {"no such order": 1}


@pytest.mark.node
@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine")
def test_function_of_the_node_guide_returns_when_its_event_is_stored(
    service: Service, node_project: Path
) -> None:
    website = service.website()
    handler = blocks("node.md", "js")[2].replace('directory: "/tmp/', 'directory: "./')
    call = "console.log(await handler({ id: 7, value: 120 })); process.kill(process.pid, 9);"
    program = node_project / "function.mjs"
    program.write_text(handler + call)
    done = subprocess.run(
        ["node", program],
        env=variables(service, website),
        cwd=node_project,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.stdout == "{ statusCode: 200 }\n"
    assert event_names(service, website) == {"order_placed": 1}


def _get(port: int, path: str) -> int:
    try:
        with Service.session() as session:
            return session.get(f"http://127.0.0.1:{port}{path}", timeout=TIMEOUT_S).status_code
    except requests.ConnectionError:
        return 0
