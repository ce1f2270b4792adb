"""The code blocks of the backup guide run unchanged, in order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testing.service import clean_environment
from tests.docs.guides import blocks
from tests.e2e.conftest import ServiceMaker


@pytest.mark.slow
def test_backup_guide_backs_up_restores_and_checks(
    dedicated_service: ServiceMaker, tmp_path: Path
) -> None:
    service = dedicated_service().start()
    website = service.website()
    service.post(f"/track?website_id={website}", {"name": "a"})
    environment = {
        **clean_environment(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DATA": str(service.data),
        "BACKUP": str(tmp_path / "backup.tar.zst"),
        "RESTORED": str(tmp_path / "restored"),
    }
    output = [
        subprocess.run(
            ["sh", "-e"], input=code, capture_output=True, text=True, env=environment, check=True
        ).stdout
        for code in blocks("backup.md", "sh")
    ]
    assert [text.split()[0] for text in output] == ["Backed", "Restored", "No"]
