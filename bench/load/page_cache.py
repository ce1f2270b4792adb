"""The page cache of the machine: emptied, so that the next start finds nothing in memory."""

import os
from pathlib import Path

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
SKIP_REASON = f"{DROP_CACHES} cannot be written: run the benchmark as root"


def can_empty() -> bool:
    """Return whether this process may empty the page cache."""
    return os.access(DROP_CACHES, os.W_OK)


def empty() -> None:
    """Write what is dirty, and drop all clean pages, directories and inodes."""
    os.sync()
    DROP_CACHES.write_text("3")
