"""The Node.js client: what its calls returned for is stored once, whichever process is killed."""

import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from testing.service import Service, wait_until
from tests.e2e.conftest import ServiceMaker

PROJECT = Path(__file__).parents[3]
CLIENT = PROJECT / "clients" / "node"
PROGRAM = Path(__file__).with_name("node_sender.mjs")
ROUNDS = int(os.environ.get("HEADRACE_CLIENT_ROUNDS", "12"))
SENDERS = 2
BYTES_BEFORE_A_KILL = 200
NPM_TIMEOUT_S = 300
UNIT_TESTS_TIMEOUT_S = 300
DRAIN_TIMEOUT_S = 100
COMPILER_OPTIONS = """{"compilerOptions": {
  "module": "NodeNext", "strict": true, "exactOptionalPropertyTypes": true,
  "noEmit": true, "types": [], "skipLibCheck": true
}}"""
TYPED_PROGRAM = """
import { Headrace, OutboxFull } from "@headrace/node";
import type { Options, Stats } from "@headrace/node";

interface Signup { plan: string; price?: number }

const options: Options = {
  url: "http://127.0.0.1:1",
  key: "hr_x",
  onRefused: (item, reason) => void [item["name"], reason.status],
};
const headrace = new Headrace(options);
const signup: Signup = { plan: "pro" };
const visitor: string | undefined = undefined;
const id: string = headrace.track("signup", signup, { anonymousId: visitor });
const stats: Stats = headrace.stats();
export const rows: Promise<Record<string, unknown>[]> = headrace.query({}, { websiteId: visitor });
export { id, stats, OutboxFull };
"""

pytestmark = [
    pytest.mark.node,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine"),
]


class Violations(NamedTuple):
    """The items whose call returned and that are not stored, and those that are stored twice."""

    lost: set[str]
    doubled: set[str]


def violations(returned: Iterable[str], stored: Mapping[str, int]) -> Violations:
    return Violations(
        set(returned) - stored.keys(), {name for name, count in stored.items() if count > 1}
    )


class Senders:
    """Processes that track events over one outbox directory, and the names that they wrote."""

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self._folder = folder
        self._options = json.dumps({**options, "directory": str(folder / "outbox"), "lingerMs": 20})
        self._running: list[subprocess.Popen[bytes]] = []
        self._count = 0

    def _command(self, prefix: str) -> list[str]:
        index = (CLIENT / "src" / "index.js").as_uri()
        return ["node", str(PROGRAM), index, self._options, prefix]

    def start_missing(self) -> None:
        """Start as many processes as are missing."""
        while len(self._running) < SENDERS:
            prefix = f"sender-{self._count}"
            self._count += 1
            with (self._folder / f"{prefix}.returned").open("wb") as output:
                self._running.append(subprocess.Popen(self._command(prefix), stdout=output))

    def wait_for_oldest(self) -> None:
        """Wait until the next process to be killed has written names, whatever its start takes."""
        output = self._folder / f"sender-{self._count - len(self._running)}.returned"
        wait_until(lambda: output.stat().st_size > BYTES_BEFORE_A_KILL, "the oldest process sends")

    def kill_oldest(self) -> None:
        oldest = self._running.pop(0)
        oldest.kill()
        oldest.wait()

    def kill_all(self) -> None:
        while self._running:
            self.kill_oldest()

    def returned(self) -> list[str]:
        """Return the names of all items whose call returned and that were written whole."""
        texts = [path.read_text() for path in sorted(self._folder.glob("*.returned"))]
        return [line for text in texts for line in text[: text.rfind("\n") + 1].splitlines()]

    def drain(self) -> dict[str, Any]:
        """Send what dead processes left behind, and return the state of the client afterwards."""
        done = subprocess.run(
            self._command(""),
            capture_output=True,
            text=True,
            timeout=DRAIN_TIMEOUT_S,
            check=True,
        )
        state: dict[str, Any] = json.loads(done.stdout)
        return state


def stored_items(service: Service, website: str) -> Counter[str]:
    return Counter(service.counts(website, "events", "properties.id")) + Counter(
        service.counts(website, "errors", "message")
    )


def test_items_are_stored_once_while_senders_and_service_are_killed(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    website = service.website()
    key = service.key("track:events").secret
    senders = Senders(tmp_path, {"url": service.url, "key": key, "website": website})
    chance = random.Random(7)  # noqa: S311 - when to kill is no secret
    try:
        for number in range(ROUNDS):
            senders.start_missing()
            senders.wait_for_oldest()
            time.sleep(chance.uniform(0.2, 1.2))
            if number % 3 == 1:
                service.kill()
                senders.kill_oldest()
                service.restart()
            else:
                senders.kill_oldest()
    finally:
        senders.kill_all()
    left = senders.drain()

    returned = senders.returned()
    assert {name: left[name] for name in ("isEmpty", "pending", "refused", "damaged")} == {
        "isEmpty": True,
        "pending": 0,
        "refused": 0,
        "damaged": 0,
    }
    assert len(returned) > ROUNDS * 10
    assert violations(returned, stored_items(service, website)) == Violations(set(), set())
    print(f"{ROUNDS} rounds, {len(returned)} items: 0 lost, 0 doubled")  # noqa: T201
    assert [path.name for path in tmp_path.glob("outbox/*/*")] == []


def test_items_that_are_lost_or_doubled_are_found() -> None:
    stored = {"a": 1, "b": 2, "unreturned": 1}
    assert violations(["a", "b", "c"], stored) == Violations({"c"}, {"b"})


def test_unit_tests_of_the_client_pass() -> None:
    tests = sorted(str(path) for path in (CLIENT / "tests").glob("*.test.js"))
    done = subprocess.run(
        ["node", "--test", *tests],
        capture_output=True,
        text=True,
        timeout=UNIT_TESTS_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_has_its_licence_types_and_sources_and_works_when_it_is_installed(
    tmp_path: Path,
) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    client = tmp_path / "client"
    shutil.copytree(CLIENT, client, ignore=shutil.ignore_patterns("node_modules", "types"))
    _run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], client)
    _run(["npm", "run", "check"], client)
    _run(["npm", "pack"], client)
    project = tmp_path / "project"
    project.mkdir()
    (archive,) = client.glob("*.tgz")
    (project / "package.json").write_text('{"private": true, "type": "module"}')
    _run(["npm", "install", "--offline", "--no-audit", "--no-fund", str(archive)], project)
    (project / "program.ts").write_text(TYPED_PROGRAM)
    (project / "tsconfig.json").write_text(COMPILER_OPTIONS)
    _run([str(client / "node_modules" / ".bin" / "tsc"), "-p", "."], project)
    installed = project / "node_modules" / "@headrace" / "node"
    names = "console.log(Object.keys(await import('@headrace/node')).sort().join())"
    from_commonjs = (
        "import('@headrace/node').then(all => console.log(Object.keys(all).sort().join()))"
    )

    printed = [
        _run(["node", "--input-type=module", "--eval", names], project),
        _run(["node", "--input-type=commonjs", "--eval", from_commonjs], project),
    ]

    exported = (
        "Headrace,HeadraceError,OutboxFull,OutboxUnavailable,QueryFailed,"
        "captureExceptions,recordErrors,recordRequests\n"
    )
    assert printed == [exported, exported]
    assert (installed / "LICENSE").read_text() == (PROJECT / "LICENSE").read_text()
    assert sorted(path.name for path in installed.iterdir()) == [
        *("LICENSE", "README.md", "package.json", "src", "types"),
    ]
    assert "](../" not in (installed / "README.md").read_text()


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
