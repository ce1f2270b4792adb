"""Faults of replicated ClickHouse servers: cut and slowed links, and kills. Each heals at its end.

Events must be acknowledged all the while, whatever of the store is away.
"""

import signal
import time
from collections.abc import Callable, Sequence
from random import Random

from chaos.disk import Capability
from chaos.fault import Fault, FaultContext, require_ingestion
from chaos.replicas.cluster import ReplicaCluster

_SECONDS = (1.0, 15.0)
"""How long a fault lasts: shorter than a session with Keeper, or longer."""

_WEIGHT = 6

Break = Callable[[ReplicaCluster, Random], None]


def _isolate_replica(cluster: ReplicaCluster, random: Random) -> None:
    cluster.network.isolate(random.choice(cluster.hosts))


def _isolate_shard(cluster: ReplicaCluster, random: Random) -> None:
    for host in random.choice(cluster.host_pairs):
        cluster.network.isolate(host)


def _isolate_keeper(cluster: ReplicaCluster, _random: Random) -> None:
    cluster.network.isolate(cluster.keeper_host)


def _cut_replicas(cluster: ReplicaCluster, random: Random) -> None:
    cluster.network.cut_between(*random.choice(cluster.host_pairs))


def _cut_shards(cluster: ReplicaCluster, _random: Random) -> None:
    first, second = cluster.host_pairs
    for one in first:
        for other in second:
            cluster.network.cut_between(one, other)


def _cut_from_keeper(cluster: ReplicaCluster, random: Random) -> None:
    cluster.network.cut_between(random.choice(cluster.hosts), cluster.keeper_host)


def _slow_replica(cluster: ReplicaCluster, random: Random) -> None:
    cluster.network.slow_down(random.choice(cluster.hosts))


def _slow_keeper(cluster: ReplicaCluster, _random: Random) -> None:
    cluster.network.slow_down(cluster.keeper_host)


def _kill_replica(cluster: ReplicaCluster, random: Random) -> None:
    random.choice(random.choice(cluster.servers.shards)).kill()


def _stop_replica(cluster: ReplicaCluster, random: Random) -> None:
    random.choice(random.choice(cluster.servers.shards)).signal(signal.SIGSTOP)


def _kill_shard(cluster: ReplicaCluster, random: Random) -> None:
    for server in random.choice(cluster.servers.shards):
        server.kill()


def _kill_keeper(cluster: ReplicaCluster, _random: Random) -> None:
    cluster.servers.keeper.server.kill()


def _kill_store(cluster: ReplicaCluster, _random: Random) -> None:
    cluster.servers.keeper.server.kill()
    for shard in cluster.servers.shards:
        for server in shard:
            server.kill()


def _broken_for_some_time(break_cluster: Break) -> Callable[[FaultContext], None]:
    """Return a fault that breaks the cluster; often a part of the service is killed meanwhile."""

    def inject(context: FaultContext) -> None:
        cluster, random = context.cluster, context.random
        if cluster is None:
            raise RuntimeError("the service was started without a cluster")
        try:
            break_cluster(cluster, random)
            time.sleep(random.uniform(0, 1))
            random.choice(_KILLS)(context)
            with require_ingestion(context):
                time.sleep(random.uniform(*_SECONDS))
        finally:
            cluster.heal()

    return inject


def _kill_nothing(_context: FaultContext) -> None:
    """Leave the service alone."""


def _kill_engine(context: FaultContext) -> None:
    context.service.kill_child("engine", context.random.choice)


def _kill_worker(context: FaultContext) -> None:
    context.service.kill_child("worker", context.random.choice)


def _restart_service(context: FaultContext) -> None:
    context.service.kill_everything()
    context.service.launch()


_KILLS = (_kill_nothing, _kill_nothing, _kill_nothing, _kill_engine, _kill_worker, _restart_service)

REPLICA_FAULTS: Sequence[Fault] = tuple(
    Fault(name, _broken_for_some_time(break_cluster), _WEIGHT, Capability.REPLICAS)
    for name, break_cluster in (
        ("isolate a replica", _isolate_replica),
        ("isolate a shard", _isolate_shard),
        ("isolate Keeper", _isolate_keeper),
        ("cut the link between two replicas", _cut_replicas),
        ("cut the links between the shards", _cut_shards),
        ("cut the link from a replica to Keeper", _cut_from_keeper),
        ("slow down a replica", _slow_replica),
        ("slow down Keeper", _slow_keeper),
        ("kill a replica", _kill_replica),
        ("stop a replica", _stop_replica),
        ("kill both replicas of a shard", _kill_shard),
        ("kill Keeper", _kill_keeper),
        ("kill all servers and Keeper", _kill_store),
    )
)
