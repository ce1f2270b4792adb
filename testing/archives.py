"""Extracts archives of the project itself, with every version of Python."""

import tarfile
from pathlib import Path


def extract_all(archive: tarfile.TarFile, into: Path) -> None:
    """Extract an archive. Only Python from 3.11.4 on has a filter of what leaves the directory."""
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(into)  # noqa: S202 - see above
