"""The wheel and the sdist of `make package` are complete and work in an isolated environment.

The tests install from `requirements/runtime.lock`, so they also show that a single machine needs
none of the libraries of the extra `cluster`.
"""

import json
import os
import signal
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import __version__
from headrace.base.build import build_digest
from testing.archives import extract_all
from testing.service import PATIENT_QUERIES

PROJECT = Path(__file__).parents[2]
DIST = PROJECT / "dist"
WHEEL = DIST / f"headrace-{__version__}-py3-none-any.whl"
SDIST = DIST / f"headrace-{__version__}.tar.gz"
CLUSTER_LIBRARIES = ("clickhouse_connect", "limits", "psycopg", "valkey")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "HEADRACE_TEST_PACKAGE" not in os.environ, reason="`make package` builds what this tests"
    ),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the runtime lock and the wheel, and without pip."""
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    installed = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", str(installed), "install", "--quiet")
    lock = str(PROJECT / "requirements" / "runtime.lock")
    run(*pip, "--no-deps", "--require-hashes", "-r", lock)
    run(*pip, "--no-deps", "--no-index", str(WHEEL))
    return installed


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fetch(url: str, *, key: str, body: Mapping[str, Any]) -> Any:
    request = urllib.request.Request(  # noqa: S310 - a service that the test started
        url,
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    return json.loads(read(request))


def read(target: str | urllib.request.Request) -> bytes:
    with urllib.request.urlopen(target, timeout=60) as response:  # noqa: S310 - as above
        content: bytes = response.read()
    return content


def test_wheel_contains_every_file_of_the_package_and_the_licenses() -> None:
    tracked = run(
        "git", "ls-files", "--cached", "--others", "--exclude-standard", "src/headrace", cwd=PROJECT
    ).splitlines()
    metadata = f"headrace-{__version__}.dist-info"

    names = set(zipfile.ZipFile(WHEEL).namelist())

    assert {name for name in names if not name.startswith(metadata)} == {
        name.removeprefix("src/") for name in tracked
    }
    assert {
        f"{metadata}/licenses/LICENSE",
        f"{metadata}/licenses/NOTICE",
        f"{metadata}/licenses/src/headrace/adapters/enrichment/data/NRO_LICENSE",
    } <= names


def test_sdist_builds_the_same_wheel(tmp_path: Path) -> None:
    with tarfile.open(SDIST) as archive:
        extract_all(archive, tmp_path)
    source = tmp_path / f"headrace-{__version__}"

    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=source)

    built = zipfile.ZipFile(tmp_path / WHEEL.name)
    expected = zipfile.ZipFile(WHEEL)
    assert {name: built.read(name) for name in built.namelist()} == {
        name: expected.read(name) for name in expected.namelist()
    }


def test_one_machine_is_installed_without_the_libraries_of_a_cluster(python: Path) -> None:
    check = "import importlib.util as u; print([m for m in {} if u.find_spec(m)])"

    found = run(str(python), "-c", check.format(CLUSTER_LIBRARIES))

    assert found == "[]\n"


def test_installed_service_starts_and_answers(python: Path, tmp_path: Path) -> None:
    headrace = str(python.with_name("headrace"))
    assert (
        run(headrace, "--version", cwd=tmp_path)
        == f"headrace, version {__version__} (build {build_digest()})\n"
    )
    today = datetime.now(UTC).date()
    made = json.loads(run(headrace, "init", "--data", "data", "--json", cwd=tmp_path))
    with subprocess.Popen(
        (headrace, "serve", "--data", "data", "--port", "0", "--workers", "1"),
        cwd=tmp_path,
        env={**os.environ, **PATIENT_QUERIES},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as service:
        try:
            assert service.stdout is not None
            announcement = service.stdout.readline()
            assert announcement.startswith("Headrace answers on http://"), service.stderr
            url = announcement.split()[3]

            readiness = json.loads(read(f"{url}/ready"))
            tracked = fetch(
                f"{url}/track",
                key=made["tracking_key"]["key"],
                body={"name": "installed", "anonymousId": "anon_1"},
            )
            result = fetch(
                f"{url}/v1/query/custom?website_id={made['website']['id']}",
                key=made["reading_key"]["key"],
                body={
                    "query": {
                        "table": "events",
                        "selects": [{"field": "*", "aggregate": "count", "alias": "events"}],
                    },
                    "startDate": str(today - timedelta(days=1)),
                    "endDate": str(today + timedelta(days=1)),
                },
            )
            pages = [len(read(f"{url}/{page}")) for page in ("docs", "openapi.json")]
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(timeout=60)

    assert service.returncode == 0
    assert readiness == {
        "status": "ready",
        "parts": dict.fromkeys(("backlog", "disk", "engine", "log"), "ready"),
    }
    assert tracked == {"status": "success", "type": "custom_event", "count": 1}
    assert result["data"] == [{"events": 1}]
    assert min(pages) > 10_000


@pytest.mark.parametrize("setting", ["CLICKHOUSE_URL", "DATABASE_URL", "VALKEY_URL"])
def test_setting_of_a_cluster_names_the_extra(python: Path, tmp_path: Path, setting: str) -> None:
    scheme = {"CLICKHOUSE_URL": "http", "DATABASE_URL": "postgresql", "VALKEY_URL": "valkey"}
    done = subprocess.run(
        (str(python), "-m", "headrace", "serve", "--data", "data", "--port", "0"),
        cwd=tmp_path,
        env={**os.environ, f"HEADRACE_{setting}": f"{scheme[setting]}://127.0.0.1:1/headrace"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(": install headrace[cluster]")
