"""The commands of the guide on imports run as they are printed, over the sample files."""

import shutil
import subprocess
from pathlib import Path

import pytest

from testing.imports import SAMPLES
from testing.service import START_TIMEOUT_S, Service
from tests.docs.guides import blocks
from tests.docs.test_guides import variables

pytestmark = pytest.mark.slow

GUIDE = "move-to-headrace.md"
FORMATS = {block.split("--format ")[1].split()[0]: block for block in blocks(GUIDE, "sh")}


@pytest.mark.parametrize("format_name", FORMATS)
def test_commands_take_the_sample_files(service: Service, tmp_path: Path, format_name: str) -> None:
    shutil.copytree(SAMPLES, tmp_path, dirs_exist_ok=True)
    environment = {
        **variables(service, service.website()),
        "HEADRACE_DATA_DIR": str(service.data),
    }
    done = subprocess.run(
        ["sh", "-e"],
        input=FORMATS[format_name].encode(),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
        timeout=START_TIMEOUT_S,
    )
    assert done.returncode in {0, 1}, done.stderr  # the samples have lines that are refused
    assert b" would be stored" in done.stdout
    assert b": 0 would be stored" not in done.stdout
