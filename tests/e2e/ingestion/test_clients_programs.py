"""Existing clients work unchanged: the published npm package, and Python with requests."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import requests

from testing.service import Json, Service, bearer

NODE_PROJECT = Path(__file__).with_name("node")
NPM_TIMEOUT_S = 120


@pytest.fixture(scope="session")
def node_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that uses the SDK, installed from its lock file."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    project = tmp_path_factory.mktemp("node") / "project"
    shutil.copytree(NODE_PROJECT, project, ignore=shutil.ignore_patterns("node_modules"))
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(
        command, cwd=project, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return project / "send.mjs"


@pytest.mark.node
@pytest.mark.slow
def test_published_node_package_works_unchanged(
    service: Service, website: str, node_program: Path
) -> None:
    key = service.key("track:events", websites=[website, service.website()])

    done = subprocess.run(
        ["node", node_program, service.url, key.secret, website],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    output = json.loads(done.stdout.splitlines()[-1])
    assert [answer["success"] for answer in output["answers"]] == [True] * 62
    assert output["flushed"]["success"] is True
    assert output["direct"]["success"] is True
    assert output["direct"]["processed"] == 2
    assert output["refused"]["success"] is False
    assert service.counts(website, "events", "event_name") == {
        "purchase": 1,
        "minimal": 1,
        "job_done": 60,
        "direct": 2,
    }
    numbers = service.counts(website, "events", "properties.number")
    expected: dict[int | None, int] = {None: 4, **dict.fromkeys(range(60), 1)}
    assert numbers == expected


@pytest.mark.node
@pytest.mark.slow
def test_event_of_the_node_package_is_stored_completely(
    service: Service, website: str, node_program: Path
) -> None:
    key = service.key("track:events")
    subprocess.run(
        ["node", node_program, service.url, key.secret, website],
        capture_output=True,
        timeout=60,
        check=True,
    )

    expected = {
        "event_name": "purchase",
        "namespace": "billing",
        "source": "backend",
        "anonymous_id": "anon_1",
        "session_id": "sess_1",
        "time": "2024-05-01T12:00:00.123Z",
        "properties.plan": "pro",
        "properties.seats": 3,
        "properties.annual": True,
        "browser_name": "",
        "is_bot": False,
    }
    filters = [{"field": "event_name", "operator": "eq", "value": "purchase"}]
    assert service.row(website, "events", list(expected), filters=filters) == expected


def test_python_program_with_none_in_optional_fields(service: Service, website: str) -> None:
    event: Json = {
        "name": "invoice_paid",
        "properties": {"amount": 49.5, "coupon": None},
        "anonymousId": None,
        "sessionId": None,
        "timestamp": None,
        "namespace": None,
        "source": None,
        "websiteId": None,
    }

    response = requests.post(
        f"{service.url}/track",
        params={"website_id": website},
        json=event,
        headers=bearer(service.master),
        timeout=60,
    )

    response.raise_for_status()
    assert response.json() == {"status": "success", "type": "custom_event", "count": 1}
    expected = {
        "event_name": "invoice_paid",
        "properties.amount": 49.5,
        "properties.coupon": None,
        "anonymous_id": "",
        "session_id": "",
        "namespace": "",
        "source": "",
        "is_bot": False,
    }
    assert service.row(website, "events", list(expected)) == expected


def test_python_program_without_a_key_is_no_bot(service: Service, website: str) -> None:
    events = [{"name": "nightly_job", "anonymousId": "worker-1"}] * 5

    response = requests.post(
        f"{service.url}/track", params={"website_id": website}, json=events, timeout=60
    )

    assert response.json() == {"status": "success", "type": "custom_event", "count": 5}
    query = {
        "table": "events",
        "selects": [{"field": "*", "aggregate": "count"}],
        "groupBy": ["event_name", "is_bot"],
    }
    assert service.answer(website, query) == [
        {"event_name": "nightly_job", "is_bot": False, "count_all": 5}
    ]
