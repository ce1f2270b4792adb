"""What a fault is, and what it acts on."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

from chaos.disk import Capability, DataDisk
from chaos.failing_calls import FailingCalls
from chaos.load import Traffic
from chaos.query_client import QueryClient
from chaos.replicas.cluster import ReplicaCluster
from chaos.service import Service

_INGESTION_TIMEOUT_S = 90.0  # also where everything was killed, on a loaded machine


class GuaranteeViolated(Exception):
    """The service violated a guarantee that does not concern a single event."""


class FaultContext(NamedTuple):
    """The objects that a fault acts on, and the number of the round.

    `check` compares all events so far with the journal, and raises `GuaranteeViolated`.
    """

    service: Service
    query_client: QueryClient
    traffic: Traffic
    disk: DataDisk
    failing_calls: FailingCalls | None
    cluster: ReplicaCluster | None
    random: Random
    number: int
    check: Callable[[], None]


class Fault(NamedTuple):
    """A kind of fault. `inject` returns when the fault is over and recovery may begin.

    Not all allow commands meanwhile that write to the data directory beside the service.
    """

    name: str
    inject: Callable[[FaultContext], None]
    weight: int = 2
    needs: Capability | None = None
    allows_commands: bool = True


@contextmanager
def require_ingestion(context: FaultContext) -> Generator[None]:
    """Require that events are acknowledged in the block, or soon after it.

    A service that has exited is started again. Raises `GuaranteeViolated`.
    """
    before = context.traffic.acknowledged_requests
    yield
    deadline = time.monotonic() + _INGESTION_TIMEOUT_S
    while context.traffic.acknowledged_requests == before:
        if time.monotonic() > deadline:
            raise GuaranteeViolated("nothing was acknowledged while the store was away")
        context.service.launch_again_if_exited()
        time.sleep(0.05)
