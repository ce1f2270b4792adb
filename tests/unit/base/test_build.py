"""The digest of a build is that of its code, wherever the code is."""

import shutil
from pathlib import Path

import pytest

from headrace.base.build import build_digest


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "headrace"
    (root / "base").mkdir(parents=True)
    (root / "__init__.py").write_text("one")
    (root / "base" / "clock.py").write_text("two")
    return root


def test_digest_of_a_build_is_that_of_a_copy_which_has_run(package: Path) -> None:
    copy = Path(shutil.copytree(package, package.with_name("copy")))
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__" / "clock.pyc").write_bytes(b"compiled")
    assert build_digest(copy) == build_digest(package) == "8623032605c0"


def test_digest_of_a_build_changes_with_contents_and_names(package: Path) -> None:
    digests = {build_digest(package)}
    (package / "base" / "clock.py").write_text("three")
    digests.add(build_digest(package))
    (package / "base" / "clock.py").rename(package / "clock.py")
    digests.add(build_digest(package))
    assert len(digests) == 3
