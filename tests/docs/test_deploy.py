"""The files under deploy/ are consistent, and the parts that can run on this machine do run."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import psycopg
import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not in the lock file

from headrace.adapters.directory.sql_directory import open_directory
from headrace.adapters.valkey.client import AsyncValkeyClient, ValkeyClient
from headrace.adapters.valkey.dedup_claims import ValkeyDedupClaims
from headrace.adapters.valkey.idempotency import ValkeyIdempotencyStore
from headrace.adapters.valkey.rate_limiter import ValkeyRateLimiter
from headrace.base.clock import SystemClock
from headrace.base.errors import SharedStateUnavailable
from headrace.base.settings import setting_specs
from headrace.ports.dedup_claims import Claim
from headrace.ports.idempotency import Acquired, Replay
from testing.chdb import FreshStore
from testing.servers.ports import free_port
from testing.servers.shared_state import PostgreSQL, Server, missing
from testing.service import Service, clean_environment

PROJECT = Path(__file__).parents[2]
DEPLOY = PROJECT / "deploy"
GUIDE = PROJECT / "docs" / "guides" / "deployment.md"
CLICKHOUSE_GUIDE = GUIDE.with_name("clickhouse.md")
SETTINGS = {row.variable for row in setting_specs()}
TEXTS = sorted(
    path
    for path in [*DEPLOY.rglob("*"), GUIDE]
    if path.is_file() and "secrets" not in path.relative_to(PROJECT).parts[:-1]
)
USERS = DEPLOY / "clickhouse" / "users.d" / "headrace.xml"
CONFIGURATIONS = sorted((DEPLOY / "clickhouse").rglob("*.xml"))


def compose() -> Mapping[str, Any]:
    read: Mapping[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return read


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The output directory of `deploy/make-secrets`, run in a copy of deploy/."""
    copy = tmp_path / "deploy"
    copy.mkdir()
    shutil.copy(DEPLOY / "make-secrets", copy)
    subprocess.run([copy / "make-secrets"], check=True, capture_output=True)
    return copy / "secrets"


@pytest.mark.parametrize("text", TEXTS, ids=[str(path.relative_to(PROJECT)) for path in TEXTS])
def test_every_named_setting_exists(text: Path) -> None:
    named = set(re.findall(r"\bHEADRACE_[A-Z0-9_]+", text.read_text()))
    assert named - SETTINGS == set()


def test_files_named_in_the_compose_file_exist(made: Path) -> None:
    parts = compose()
    services: Mapping[str, Mapping[str, Any]] = parts["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= services.keys(), name
        assert set(service.get("secrets", ())) <= parts["secrets"].keys(), name
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            is_there = (DEPLOY / source).exists() if "/" in source else source in parts["volumes"]
            assert is_there, (name, source)
    files = {secret["file"] for secret in parts["secrets"].values()} | {"secrets/clickhouse.env"}
    assert {file for file in files if not (made.parent / file).is_file()} == set()


def test_every_machine_has_the_same_configuration() -> None:
    services = compose()["services"]
    first, second = services["headrace-1"], services["headrace-2"]
    assert first["environment"] == second["environment"]
    assert first["secrets"] == second["secrets"]


def test_container_file_copies_existing_paths() -> None:
    copied = re.findall(r"^COPY (?!--)(.+)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    sources = [source for line in copied for source in line.split()[:-1]]
    assert [source for source in sources if not (PROJECT / source).exists()] == []
    assert len(sources) == 6


def test_health_check_of_the_container_is_on_the_port_of_the_service(service: Service) -> None:
    text = (DEPLOY / "Containerfile").read_text()
    (check,) = re.findall(r"^HEALTHCHECK .*\\\n  CMD (.+)$", text, re.MULTILINE)
    python, *arguments = json.loads(check)
    assert python == "python"

    def exit_code(port: int) -> int:
        environment = clean_environment({"HEADRACE_PORT": str(port)})
        environment["http_proxy"] = "http://127.0.0.1:9"  # as Docker's client sets it
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, timeout=60, check=False).returncode

    assert [exit_code(service.port), exit_code(free_port())] == [0, 1]


@pytest.mark.parametrize(
    "path", CONFIGURATIONS, ids=[str(path.relative_to(DEPLOY)) for path in CONFIGURATIONS]
)
def test_configuration_of_clickhouse_is_xml_with_known_variables(path: Path, made: Path) -> None:
    tree = ET.parse(path)  # noqa: S314 - our own file
    variables = {element.get("from_env") for element in tree.iter() if element.get("from_env")}
    configuration = set(re.findall(r"^(\w+)=", (made / "clickhouse.env").read_text(), re.MULTILINE))
    for service in compose()["services"].values():
        environment = service.get("environment", {})
        configuration |= {name for name in environment if name.startswith(("CLICKHOUSE", "KEEPER"))}
    assert variables - configuration == set()


def test_rights_of_the_users_can_be_read_by_clickhouse(chdb_store: FreshStore) -> None:
    tree = ET.parse(USERS)  # noqa: S314 - our own file
    grants = [element.text for element in tree.iter("query")]
    assert len(grants) > 5
    for grant in grants:
        ((read,),) = chdb_store.rows(f"SELECT formatQuery('{grant} TO somebody')")
        assert read.startswith("GRANT "), grant


def rights(texts: Iterable[str], user: str) -> set[tuple[str, str]]:
    """Return the rights that GRANT statements give a user, as pairs of a right and its object."""
    found: set[tuple[str, str]] = set()
    for text in texts:
        granted = text.removeprefix("GRANT ").removesuffix(f" TO {user}")
        if granted.startswith("TABLE ENGINE"):
            found |= {("TABLE ENGINE", name) for name in re.findall(r"ENGINE ON (\w+)", granted)}
        else:
            names, _, location = granted.rpartition(" ON ")
            found |= {(name, location) for name in names.split(", ")}
    return found


@pytest.mark.parametrize("user", ["headrace_writer", "headrace_reader"])
def test_users_have_the_rights_of_the_guide_and_those_that_replicas_need(user: str) -> None:
    guide = CLICKHOUSE_GUIDE.read_text()
    named = re.findall(rf"^(GRANT .+ TO {user});$", guide, re.MULTILINE)
    tree = ET.parse(USERS)  # noqa: S314 - our own file
    granted_rights = [element.text or "" for element in tree.findall(f"users/{user}/grants/query")]
    plain, replicated = ("TABLE ENGINE", "MergeTree"), {("CLUSTER", "*.*"), ("REMOTE", "*.*")}
    more = replicated if user == "headrace_writer" else set[tuple[str, str]]()
    assert rights(granted_rights, user) == (rights(named, user) - {plain}) | more


def test_script_creates_a_role_that_only_owns_one_database(
    made: Path, postgresql: PostgreSQL
) -> None:
    if shutil.which("psql") is None:
        missing("psql")
    script = DEPLOY / "postgresql" / "10-headrace.sh"
    here = {"PGHOST": "127.0.0.1", "PGPORT": str(postgresql.port), "PATH": os.environ["PATH"]}
    subprocess.run(
        [script],
        env={**here, "PASSWORD_FILE": str(made / "postgresql_password")},
        check=True,
        capture_output=True,
    )
    url = (made / "database_url").read_text().strip()
    url = url.replace("postgresql:5432", f"127.0.0.1:{postgresql.port}")
    directory = open_directory(url, SystemClock())
    assert directory.create_organization("acme").name == "acme"
    directory.close()
    with psycopg.connect(url, autocommit=True) as connection:
        role = (
            "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = 'headrace'"
        )
        assert connection.execute(role).fetchone() == (False, False, False)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE DATABASE other")


def test_secrets_are_created_once_and_readable_by_their_owner_only(made: Path) -> None:
    before = {path.name: path.read_text() for path in made.iterdir()}
    again = subprocess.run(
        [made.parent / "make-secrets"], check=True, capture_output=True, text=True
    )
    assert "already exists" in again.stderr
    assert {path.name: path.read_text() for path in made.iterdir()} == before
    assert made.stat().st_mode & 0o777 == 0o700
    assert "deploy/secrets/" in (PROJECT / ".gitignore").read_text().splitlines()


def test_units_are_well_formed(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed on this machine")
    unit = (DEPLOY / "systemd" / "headrace.service").read_text()
    unit = unit.replace("/opt/headrace/bin/headrace", "/bin/true")
    (tmp_path / "headrace.service").write_text(unit)
    (tmp_path / "headrace.service.d").mkdir()
    shutil.copy(DEPLOY / "systemd" / "cluster.conf", tmp_path / "headrace.service.d")
    done = subprocess.run(
        [program, "verify", "--man=no", tmp_path / "headrace.service"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def guarded_server(made: Path, tmp_path: Path) -> Iterator[str]:
    """Start a server with the configuration and users of the deployment, and yield its URL."""
    from testing.servers.ports import free_port  # noqa: PLC0415 - only this test needs it

    program = shutil.which("valkey-server") or shutil.which("redis-server")
    if program is None:
        missing("neither Valkey nor Redis")
    port = free_port()
    url = (made / "valkey_url").read_text().strip().replace("valkey:6379", f"127.0.0.1:{port}")
    options = ["--port", str(port), "--dir", str(tmp_path), "--bind", "127.0.0.1"]

    def is_ready() -> bool:
        client = AsyncValkeyClient(url)

        async def check() -> bool:
            is_up = await client.is_ready()
            await client.close()
            return is_up

        return asyncio.run(check())

    server = Server(
        [
            *(str(program), str(DEPLOY / "valkey" / "valkey.conf")),
            *("--aclfile", str(made / "valkey_users"), *options),
        ],
        is_ready,
        tmp_path,
    )
    server.start()
    yield url
    server.kill()


def test_valkey_user_has_the_needed_permissions(guarded_server: str, tmp_path: Path) -> None:
    blocking = ValkeyClient(guarded_server)
    claims = ValkeyDedupClaims(
        blocking,
        tmp_path / "claims",
        identity="a",
        machine="a",
        known_digests=lambda: [(b"x", 1)],
        waits_for_pending=False,
    )
    assert claims.claim(1, {b"d": Claim(1, 1 << 42)}) == frozenset()
    claims.mark_stored(1)
    for command in (("FLUSHALL",), ("KEYS", "*"), ("CONFIG", "GET", "*"), ("GET", "other")):
        with pytest.raises(SharedStateUnavailable, match=r"(?i)permission"):
            blocking.execute(*command)
    claims.close()

    async def get_salt(_now_ms: int) -> bytes:
        return b"s" * 32

    async def use() -> None:
        server = AsyncValkeyClient(guarded_server, timeout_s=60)
        idempotency_store = ValkeyIdempotencyStore(server, owner="machine/worker-0")
        await idempotency_store.open()
        assert await idempotency_store.acquire(b"one") == Acquired()
        await idempotency_store.save_response(b"one", b"reply")
        assert await idempotency_store.acquire(b"one") == Replay(b"reply")
        assert await idempotency_store.acquire(b"two") == Acquired()
        await idempotency_store.release(b"two")
        limiter = ValkeyRateLimiter(server, 2, get_salt=get_salt, clock=SystemClock())
        assert [(await limiter.hit("a")).allowed for _ in range(3)] == [True, True, False]
        await server.close()

    asyncio.run(use())
