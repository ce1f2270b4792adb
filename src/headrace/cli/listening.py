"""The socket that the service listens on, and whether another program has its port."""

import contextlib
import socket
from collections.abc import Generator

from headrace.base.errors import OperatorError, system_reason
from headrace.base.settings import Settings

_BACKLOG = 2048


@contextlib.contextmanager
def listening(settings: Settings) -> Generator[socket.socket]:
    """Listen on the socket that all workers inherit. Raises `OperatorError`."""
    with _bound(settings, backlog=_BACKLOG) as listening_socket:
        listening_socket.setblocking(False)
        yield listening_socket


def check_port(settings: Settings) -> None:
    """Raise `OperatorError` where the service could not listen: another program has its port."""
    with _bound(settings, backlog=None):
        return


@contextlib.contextmanager
def _bound(settings: Settings, *, backlog: int | None) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((settings.host, settings.port))
            if backlog is not None:
                bound.listen(backlog)
        except OSError as error:
            raise OperatorError(
                f"cannot listen on {settings.host} port {settings.port}: {system_reason(error)}; "
                "choose others with --host and --port, or HEADRACE_HOST and HEADRACE_PORT"
            ) from error
        yield bound
