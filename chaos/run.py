"""Runs the rounds on one disk after the other."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from chaos.disk import Capability, DataDisk, DiskFailed, DiskUnavailable
from chaos.disk_kinds import ORDINARY, REPLICAS, disk_kinds
from chaos.failing_calls import prepare_failing_calls
from chaos.fault import Fault, GuaranteeViolated
from chaos.faults import possible_faults
from chaos.replicas.cluster import (
    RECOVERY_TIMEOUT_S as CLUSTER_RECOVERY_TIMEOUT_S,
)
from chaos.replicas.cluster import ClusterUnavailable, ReplicaCluster
from chaos.report import Report
from chaos.rounds import Rounds
from chaos.service import RECOVERY_TIMEOUT_S, RecoveryTimeout, Service
from testing.servers.ports import free_port

_FAILURES = (GuaranteeViolated, RecoveryTimeout, DiskFailed, subprocess.SubprocessError)


class Run:
    """One run of the crash test. Each disk has a data directory and a service of its own.

    `damages_store` breaks the rows on replicated servers, which the run must find.
    """

    def __init__(
        self,
        work: Path,
        *,
        seed: int,
        only: str,
        ignores_flushes: bool = False,
        damages_store: bool = False,
    ) -> None:
        self._work = work
        self._seed = seed
        self._only = only
        self._kinds = disk_kinds(ignores_flushes=ignores_flushes)
        self._damages_store = damages_store
        self._failing_calls = prepare_failing_calls(work)
        self._rounds: Rounds | None = None
        self._is_ending = False
        self.reports: list[Report] = []
        self.violations: list[str] = []

    def run(self, rounds: int, disks: Sequence[str]) -> None:
        """Divide the rounds among the disks. Prints which ones this machine cannot have.

        Where it can have none of them, the rounds run on the ordinary disk. Replicated servers have
        no such replacement.
        """
        if self._failing_calls is None:
            print("failing calls: left out, need Linux and a C compiler", flush=True)
        usable = [name for name in disks if self._is_usable(name)]
        for index, name in enumerate(usable):
            done = sum(report.rounds for report in self.reports)
            self._try_disk(name, -(-(rounds - done) // (len(usable) - index)))
        if not self.reports and REPLICAS.keys().isdisjoint(disks):
            self._try_disk(ORDINARY, rounds)

    def stop_after_round(self) -> None:
        """Make the current round the last one. The final check of all events still runs."""
        self._is_ending = True
        if self._rounds is not None:
            self._rounds.stop_after_round()

    def _is_usable(self, name: str) -> bool:
        kind = self._kinds[name]
        if missing := kind.missing():
            print(f"{name}: left out, needs {missing}", flush=True)
        return not missing and bool(self._possible_faults(kind.capabilities))

    def _possible_faults(self, of_disk: frozenset[Capability]) -> Sequence[Fault]:
        of_machine = {Capability.FAILING_CALLS} if self._failing_calls else set[Capability]()
        return possible_faults(of_disk | of_machine, self._only)

    def _try_disk(self, name: str, rounds: int) -> None:
        if self._is_ending or not rounds:
            return
        work = self._work / name
        work.mkdir()
        try:
            kind = self._kinds[name]
            with kind.open(work) as disk, kind.open_cluster() as cluster:
                self._run_on(name, disk, cluster, rounds)
        except (DiskUnavailable, ClusterUnavailable) as error:
            print(f"{name}: left out, {error}", flush=True)

    def _run_on(
        self, name: str, disk: DataDisk, cluster: ReplicaCluster | None, number_of_rounds: int
    ) -> None:
        calls = self._failing_calls
        service = Service(
            disk.data,
            log=disk.work / "service.log",
            port=free_port(),
            environment={
                **(calls.environment if calls else {}),
                **(cluster.environment if cluster else {}),
            },
            recovery_timeout_s=CLUSTER_RECOVERY_TIMEOUT_S if cluster else RECOVERY_TIMEOUT_S,
        )
        rounds = Rounds(
            service=service,
            disk=disk,
            failing_calls=calls,
            cluster=cluster,
            damages_store=self._damages_store,
            faults=self._possible_faults(self._kinds[name].capabilities),
            seed=self._seed,
            name=name,
        )
        self._rounds = rounds
        violation = ""
        try:
            rounds.run(number_of_rounds)
        except _FAILURES as error:
            violation = f"BROKEN: seed {self._seed}, {name}, round {rounds.report.rounds}: {error}"
            print(violation, flush=True)
            self.violations.append(violation)
        finally:
            service.kill_everything()
            self.reports.append(rounds.report)
            if violation:
                disk.keep(disk.work / "kept")
            if violation and cluster:
                cluster.keep_logs(disk.work / "kept-servers")
