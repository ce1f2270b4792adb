"""The files that this process has open."""

from pathlib import Path

_DELETED = " (deleted)"


def nameless(directory: Path) -> set[str]:
    """Return what the open files of a directory were called that have no name left."""
    links = Path("/proc/self/fd").iterdir()
    targets = [Path(link.readlink()) for link in links if link.is_symlink()]
    return {
        target.name.removesuffix(_DELETED)
        for target in targets
        if target.parent == directory and target.name.endswith(_DELETED)
    }


def number_of_descriptors() -> int:
    """Return how many descriptors this process has; the one that lists them is among them."""
    return len(list(Path("/proc/self/fd").iterdir()))
