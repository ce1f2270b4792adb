"""Images of file systems that tests mount."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.powercut.file_systems import FileSystem


@contextmanager
def mounted(file_system: FileSystem, image: Path, directory: Path) -> Generator[Path]:
    """Mount an image at a directory. Skips the test where the machine forbids that."""
    directory.mkdir(exist_ok=True)
    command = ["mount", "-t", file_system.type, "-o", "loop", str(image), str(directory)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine forbids to mount: {done.stderr}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)
