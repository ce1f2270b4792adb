"""The commands of the crash test run on the same store as the service."""

import json
from pathlib import Path

import pytest

from chaos import service as service_module
from chaos.service import Service

PRINT_SETTINGS = """#!/usr/bin/env python3
import json, os
names = ("HEADRACE_CLICKHOUSE_URL", "HEADRACE_PORT", "LD_PRELOAD")
print(json.dumps({name: os.environ.get(name) for name in names}))
"""


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service whose commands print their settings."""
    program = tmp_path / "headrace"
    program.write_text(PRINT_SETTINGS)
    program.chmod(0o700)
    monkeypatch.setattr(service_module, "HEADRACE", str(program))
    monkeypatch.setenv("HEADRACE_PORT", "1")
    return Service(
        tmp_path / "data",
        log=tmp_path / "service.log",
        port=1,
        environment={"HEADRACE_CLICKHOUSE_URL": "clickhouse://servers/one", "LD_PRELOAD": ""},
    )


EXPECTED = {
    "HEADRACE_CLICKHOUSE_URL": "clickhouse://servers/one",
    "HEADRACE_PORT": None,
    "LD_PRELOAD": None,
}


def test_command_has_the_settings_of_the_service_and_its_calls_do_not_fail(
    service: Service,
) -> None:
    assert service.command("prune") == EXPECTED


def test_command_in_the_background_has_them_too(service: Service) -> None:
    assert service.launch_command("import").wait(30) == 0
    assert json.loads(service.log.read_text()) == EXPECTED
