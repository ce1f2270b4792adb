"""What the fuzzer looks for in the log of a service."""

from pathlib import Path

import pytest

import headrace
from chaos.fuzz.service import SIGNS_OF_FAILURE

SOURCES = "\n".join(module.read_text() for module in Path(headrace.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("event_name", sorted({*SIGNS_OF_FAILURE} - {"Traceback"}))
def test_event_that_is_a_sign_of_failure_is_one_of_the_service(event_name: str) -> None:
    assert f'"{event_name}"' in SOURCES
