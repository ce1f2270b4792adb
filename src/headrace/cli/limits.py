"""What the operating system lets the service have."""

import resource
from contextlib import suppress
from typing import Final

_ENOUGH_FILES: Final = 1_048_576


def raise_file_limit() -> None:
    """Let this process and its children open as many files as they may, up to a million.

    Each connection is one, and the limit that shells give is often 1,024.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH_FILES if most == resource.RLIM_INFINITY else min(most, _ENOUGH_FILES)
    with suppress(ValueError, OSError):  # what there is must do
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
