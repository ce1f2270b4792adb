"""Removes the files of mutations that chDB could not write on a full disk.

chDB reports success for such a mutation and runs it, but cannot open the table again: its file is
empty, or ends within its text. The rows stay readable once the file is gone; the mutation
has to be begun again.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FIRST_LINE: Final = b"format version: 1\n"
_MUTATIONS: Final = "mutation_*.txt"


def remove_broken_mutations(table_directory: Path) -> int:
    """Remove the broken files of a detached table; return how many. Raises `OSError`."""
    broken = [file for file in table_directory.glob(_MUTATIONS) if _is_broken(file)]
    for file in broken:
        file.unlink()
    return len(broken)


def directories_of_tables(store: Path) -> Iterator[Path]:
    """Return the directories of all tables of a closed store: `store/abc/abcd…`."""
    return store.glob("store/*/*/")


def _is_broken(file: Path) -> bool:
    content = file.read_bytes()
    return not (content.startswith(_FIRST_LINE) and content.endswith(b"\n"))
