"""The code blocks of the upgrade guide run unchanged, in order, on data of an older version."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from testing.service import clean_environment
from tests.docs.guides import GUIDES
from tests.e2e.operation.test_data_directory import ARCHIVES, unpack
from tests.fixtures.make_data_directory import CONTENT


def indented_blocks(guide: str) -> list[str]:
    """Return the blocks of shell commands, also those within a list."""
    blocks = (GUIDES / guide).read_text().split("```sh\n")[1:]
    return [textwrap.dedent(block.partition("```")[0]) for block in blocks]


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name.partition(".")[0])
def test_upgrade_guide_backs_up_and_tries_the_new_version_on_a_copy(
    archive: Path, tmp_path: Path
) -> None:
    environment = {
        **clean_environment(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DATA": str(unpack(archive, tmp_path)),
        "BACKUP": str(tmp_path / "backup.tar.zst"),
        "TRIAL": str(tmp_path / "trial"),
    }
    backup, trial = (
        subprocess.run(
            ["sh", "-e"], input=code, capture_output=True, text=True, env=environment, check=True
        ).stdout
        for code in indented_blocks("upgrade.md")
    )
    assert backup.startswith("Backed up ")
    stored = {table: str(sum(rows.values())) for table, rows in CONTENT.items()}
    lines = [line.split() for line in trial.splitlines()]
    assert {line[1]: line[2] for line in lines if line[0].startswith("web_")} == stored
    assert trial.splitlines()[-1].startswith("No problems found: ")
