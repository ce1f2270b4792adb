"""How much the kernel still has to send on a connection."""

import fcntl
import sys
import termios
from typing import Protocol

_COUNT_BYTES = 4


class _HasFile(Protocol):
    def fileno(self) -> int: ...


def queued_bytes(connection: _HasFile) -> int:
    """Return the bytes that the other side has not received; 0 where the kernel does not say.

    The kernel takes megabytes ahead of a slow client, and then none until it has sent a third of
    them: meanwhile only this number shows that the client reads.
    """
    try:
        count = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(_COUNT_BYTES))
    except (OSError, ValueError):  # the latter for one that is closed
        return 0
    return int.from_bytes(count, sys.byteorder)
