"""The disks on which the crash test can run."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

from chaos.disk import (
    MEMORY_CAPABILITIES,
    ORDINARY_CAPABILITIES,
    Capability,
    DataDisk,
    memory_disk,
    missing_for_memory,
    ordinary_disk,
)
from chaos.powercut.file_systems import FILE_SYSTEMS, FileSystem
from chaos.powercut.recording_disk import RECORDING_CAPABILITIES, recording_disk
from chaos.replicas.cluster import ReplicaCluster, running_cluster

ORDINARY = "ordinary"
REPLICAS: Mapping[str, int] = {"replicas": 0, "replicas-quorum": 2}
"""Where the rows are on replicated ClickHouse servers: the quorum of an insert."""

_REPLICA_CAPABILITIES = frozenset({Capability.REPLICAS})


class DiskKind(NamedTuple):
    """A kind of disk, or of store beside the ordinary disk.

    `missing` returns what this machine lacks, or an empty string. `open` raises `DiskUnavailable`
    and `open_cluster` raises `ClusterUnavailable` where the machine turns out to lack something
    else. Without a cluster, rows are in the embedded store.
    """

    capabilities: frozenset[Capability]
    missing: Callable[[], str]
    open: Callable[[Path], AbstractContextManager[DataDisk]]
    open_cluster: Callable[[], AbstractContextManager[ReplicaCluster | None]] = nullcontext


def disk_kinds(*, ignores_flushes: bool) -> Mapping[str, DiskKind]:
    """Return all kinds by name. Recording disks can be told to ignore flushes."""
    return {
        "memory": DiskKind(MEMORY_CAPABILITIES, missing_for_memory, memory_disk),
        **{name: _recording_kind(each, ignores_flushes) for name, each in FILE_SYSTEMS.items()},
        ORDINARY: DiskKind(ORDINARY_CAPABILITIES, str, ordinary_disk),
        **{
            name: DiskKind(
                _REPLICA_CAPABILITIES, str, ordinary_disk, partial(running_cluster, quorum=quorum)
            )
            for name, quorum in REPLICAS.items()
        },
    }


def _recording_kind(file_system: FileSystem, ignores_flushes: bool) -> DiskKind:
    opened = partial(recording_disk, file_system=file_system, ignores_flushes=ignores_flushes)
    return DiskKind(RECORDING_CAPABILITIES, file_system.missing, opened)
