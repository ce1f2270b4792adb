"""Every direct dependency has its reason in ADR 11."""

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
DECISION = (PROJECT / "docs" / "adr" / "0011-dependencies.md").read_text()
PROJECT_TABLE = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
FOR_TESTS = (PROJECT / "requirements" / "dev.in").read_text()


def name_of(requirement: str) -> str:
    found = re.match(r"[\w-]+", requirement)
    assert found, requirement
    return found[0]


REQUIREMENTS = [
    *PROJECT_TABLE["dependencies"],
    *PROJECT_TABLE["optional-dependencies"]["cluster"],
    *(line for line in FOR_TESTS.splitlines() if not line.startswith("-r ")),
]
REASONED = {
    word
    for row in DECISION.splitlines()
    if row.startswith("| ") and not row.startswith("| Dependency")
    for word in re.findall(r"[a-z][\w-]+", row.split("|")[1])
}


@pytest.mark.parametrize("name", sorted(map(name_of, REQUIREMENTS)))
def test_dependency_has_a_reason(name: str) -> None:
    assert name in REASONED
