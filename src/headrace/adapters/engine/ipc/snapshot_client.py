"""Borrows a snapshot from a running service's engine."""

import contextlib
import socket as sockets
from collections.abc import Generator
from pathlib import Path
from typing import Final

from headrace.adapters.backup.snapshots import Snapshot
from headrace.adapters.engine.ipc.protocol import (
    Failure,
    IpcReply,
    ProtocolError,
    SnapshotTaken,
    TakeSnapshot,
    send_request_blocking,
)
from headrace.base.errors import OperatorError

_TIMEOUT_S: Final = 600.0
"""A load may be running, and the ledger is copied: seconds at most, but disks can be slow."""


@contextlib.contextmanager
def live_snapshot(socket: Path) -> Generator[Snapshot]:
    """Have a snapshot taken; the engine removes it when the block is left, or the process dies.

    Blocking. Raises `OperatorError` when the engine is away or cannot take one.
    """
    with sockets.socket(sockets.AF_UNIX) as connection:
        connection.settimeout(_TIMEOUT_S)
        match _request_snapshot(connection, socket):
            case SnapshotTaken(path=path, entries=entries):
                yield Snapshot(Path(path), entries)
            case Failure(reason=reason):
                raise OperatorError(reason)
            case _:
                raise OperatorError("the engine answered something else")


def _request_snapshot(connection: sockets.socket, socket: Path) -> IpcReply:
    try:
        connection.connect(str(socket))
        return send_request_blocking(connection, TakeSnapshot())
    except (OSError, ProtocolError) as error:
        raise OperatorError(
            "the engine of the running service does not answer now; try again"
        ) from error
