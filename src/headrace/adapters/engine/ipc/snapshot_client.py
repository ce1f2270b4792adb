"""Requests a snapshot from the engine process of a running service."""

import contextlib
import socket as sockets
from collections.abc import Generator
from pathlib import Path
from typing import Final

from headrace.adapters.backup.snapshots import Snapshot
from headrace.adapters.engine.ipc.framing import ProtocolError, send_request_blocking
from headrace.adapters.engine.ipc.messages import Failure, IpcReply, SnapshotTaken, TakeSnapshot
from headrace.base.errors import OperatorError

_TIMEOUT_S: Final = 600.0
"""Waiting for a load and copying the ledger take seconds at most, but disks can be slow."""


@contextlib.contextmanager
def live_snapshot(socket: Path, *, partial: bool) -> Generator[Snapshot]:
    """Take a snapshot; the engine removes it when the block exits or this process dies.

    A partial one leaves out what cannot be read of the logs. Blocking. Raises `OperatorError` when
    the engine is away or cannot take a snapshot.
    """
    with sockets.socket(sockets.AF_UNIX) as connection:
        connection.settimeout(_TIMEOUT_S)
        match _request_snapshot(connection, socket, TakeSnapshot(partial=partial)):
            case SnapshotTaken(path=path, entries=entries, unreadable=unreadable):
                yield Snapshot(Path(path), entries, unreadable)
            case Failure(reason=reason):
                raise OperatorError(reason)
            case _:
                raise OperatorError("unexpected reply of the engine")


def _request_snapshot(connection: sockets.socket, socket: Path, request: TakeSnapshot) -> IpcReply:
    try:
        connection.connect(str(socket))
        return send_request_blocking(connection, request)
    except (OSError, ProtocolError) as error:
        raise OperatorError(
            "the engine of the running service does not respond; try again"
        ) from error
