"""The standard streams of a command, which its caller may have closed, or which may be full."""

import os
import sys


def open_closed_streams() -> None:
    """Open the standard streams that the caller closed on the null device, as None has no methods.

    A new file has the lowest free number, so no file of a command takes that of a stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - it stays
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def discard_unwritable_output() -> None:
    """Discard what could not be written to standard output, as on a full disk.

    The command has said so. Python would try again at its end, print a traceback and exit with 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
