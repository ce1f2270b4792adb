"""Which requests are answered after their client has closed its half of the connection."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

from starlette.routing import compile_path

from headrace.http.endpoints import ENDPOINTS
from headrace.http.server.fast_path import PendingRequest
from headrace.http.server.uvicorn_internals import RequestResponseCycle

_CANCELLED: Final = tuple(
    compile_path(spec.path)[0] for spec in ENDPOINTS if spec.is_cancelled_by_disconnect
)

AnyRequest = PendingRequest | RequestResponseCycle


def answered_requests(requests: Iterable[AnyRequest]) -> Sequence[AnyRequest]:
    """Return those of the whole requests of a connection, oldest first, that are still answered.

    These are the requests before the first query: nobody can tell a client that has closed its half
    from one that has left, which ends a query; and what follows it must not be answered before it.
    """
    return tuple(takewhile(_is_answered, requests))


def _is_answered(request: AnyRequest) -> bool:
    if isinstance(request, PendingRequest):
        return True
    path: str = request.scope["path"]
    return not any(pattern.match(path) for pattern in _CANCELLED)
