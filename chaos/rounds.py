"""Runs rounds on one data directory: load, a fault, recovery, and a check of all events so far."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from random import Random

from chaos.checks import Checks
from chaos.disk import DataDisk
from chaos.event_journal import EventJournal, Fate
from chaos.failing_calls import FailingCalls
from chaos.fault import Fault, FaultContext
from chaos.faults import choose_fault
from chaos.load import Traffic, load
from chaos.operations.choice import choose_operation, create_operation
from chaos.operations.operation import Operation, OperationContext
from chaos.query_client import Account, QueryClient
from chaos.replicas.cluster import ReplicaCluster
from chaos.report import Report
from chaos.service import Service

_PROGRESS_EVERY = 10
_LONGEST_HEAD_START_S = 0.1


class Rounds:
    """The rounds on one disk. `seed` determines the faults and their timing."""

    def __init__(
        self,
        *,
        service: Service,
        disk: DataDisk,
        failing_calls: FailingCalls | None,
        cluster: ReplicaCluster | None,
        damages_store: bool,
        faults: Sequence[Fault],
        seed: int,
        name: str,
    ) -> None:
        self._service = service
        self._disk = disk
        self._failing_calls = failing_calls
        self._cluster = cluster
        self._damages_store = damages_store
        self._faults = faults
        self._seed = f"{seed}-{name}"
        self._random = Random(self._seed)
        self._journal = EventJournal()
        self._is_ending = False
        self.report = Report(seed=seed, disk=name)

    def run(self, rounds: int) -> None:
        """Run the rounds. Raises `GuaranteeViolated` with the violations, or `RecoveryTimeout`."""
        started_s = time.monotonic()
        self._begin()
        try:
            for number in range(1, rounds + 1):
                if self._is_ending:
                    break
                self._run_round(number)
                if number % _PROGRESS_EVERY == 0:
                    self._print_progress(time.monotonic() - started_s)
            self._checks.check_everything()
        finally:
            self.report.starts = self._service.starts
            self.report.duration_s = round(time.monotonic() - started_s, 1)
            self.report.record_traffic(self._traffic)
            self.report.record_disk(self._disk)

    def stop_after_round(self) -> None:
        """Make the current round the last one. The final check of all events still runs."""
        self._is_ending = True

    def _print_progress(self, elapsed_s: float) -> None:
        acknowledged = self._journal.totals().get(Fate.ACKNOWLEDGED, 0)
        counts = f"{self.report.rounds} rounds, {acknowledged} events acknowledged"
        print(f"{self.report.disk}: {counts}, {elapsed_s:.0f} s", flush=True)

    def _begin(self) -> None:
        """Start the service for the first time, killing it while it creates its tables."""
        for _ in range(self._random.randint(0, 2)):
            self._service.launch()
            time.sleep(self._random.uniform(0.2, 1.5))
            self._service.kill_everything()
        self._service.launch()
        self._service.wait_for_recovery()
        website = self._service.command("website", "create", "--name", "crash test")["id"]
        scopes = ("--scope=track:events", "--scope=read:data", "--scope=manage:data")
        key = self._service.command("key", "create", *scopes)["key"]
        account = Account(website, key)
        self._query_client = QueryClient(self._service, account)
        self._traffic = Traffic(port=self._service.port, account=account, journal=self._journal)
        self._checks = Checks(
            query_client=self._query_client,
            traffic=self._traffic,
            journal=self._journal,
            report=self.report,
        )
        self._disk.begin_load()

    def _run_round(self, number: int) -> None:
        fault = choose_fault(self._random, self._faults)
        self.report.rounds = number
        self.report.faults[fault.name] += 1
        random = Random(f"{self._seed}-{number}")
        context = FaultContext(
            service=self._service,
            query_client=self._query_client,
            traffic=self._traffic,
            disk=self._disk,
            failing_calls=self._failing_calls,
            cluster=self._cluster,
            random=random,
            number=number,
            check=lambda: self._checks.check_round(number),
        )
        with load(self._traffic, f"{number}", f"{self._seed}-{number}"):
            time.sleep(random.uniform(0.05, 0.5))
            operation = self._begin_operation(fault, number)
            with _abandoned_on_failure(operation):
                fault.inject(context)
                over_s = time.monotonic()
                self._service.wait_for_recovery()
                self.report.record_recovery(fault.name, time.monotonic() - over_s)
                if operation is not None:
                    operation.finish()
            time.sleep(0.1)
        if self._cluster is not None:
            self._settle(self._cluster)
        self._checks.check_round(number)

    def _begin_operation(self, fault: Fault, number: int) -> Operation | None:
        """Begin what is to be in progress at the fault, if anything is."""
        random = Random(f"{self._seed}-{number}-operation")
        name = choose_operation(random, fault)
        if name is None:
            return None
        context = OperationContext(self._service, self._query_client, self._traffic, random, number)
        operation = create_operation(name, context)
        if not operation.begin():
            return None
        self.report.operations[name] += 1
        time.sleep(random.uniform(0, _LONGEST_HEAD_START_S))
        return operation

    def _settle(self, cluster: ReplicaCluster) -> None:
        """Wait until every replica has all events: a query may read one that is 1 s behind."""
        self._query_client.counts("events")  # loads what the logs have
        cluster.wait_until_equal()
        if self._damages_store:
            cluster.damage()


@contextmanager
def _abandoned_on_failure(operation: Operation | None) -> Generator[None]:
    try:
        yield
    except BaseException:
        if operation is not None:
            operation.abandon()
        raise
