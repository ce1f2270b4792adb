"""Runs rounds on one data directory: load, a fault, recovery, and a check of all events so far."""

import time
from collections.abc import Iterable
from random import Random

from chaos.disk import DataDisk
from chaos.event_journal import Bucket, EventJournal, Fate, Rows, Violations
from chaos.faults import FAULTS, Fault, FaultContext, GuaranteeViolated, choose_fault
from chaos.load import TABLES, Traffic, load
from chaos.query_client import Account, QueryClient
from chaos.report import Report
from chaos.service import Service

_SHOWN_IDS = 20
_PROGRESS_EVERY = 10


class Rounds:
    """One run. `seed` determines the faults and their timing."""

    def __init__(self, *, service: Service, disk: DataDisk, seed: int, only: str = "") -> None:
        self._service = service
        self._disk = disk
        self._only = only
        self._seed = seed
        self._random = Random(seed)
        self._journal = EventJournal()
        self._is_ending = False
        self.report = Report(seed=seed)
        if not disk.can_be_full:
            self.report.skipped = [name for name, each in FAULTS.items() if each.needs_own_disk]

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
            for table in TABLES.values():
                self._check_buckets(self._journal.buckets(table))
        finally:
            self.report.starts = self._service.starts
            self.report.duration_s = round(time.monotonic() - started_s, 1)
            self.report.record_traffic(self._traffic)

    def stop_after_round(self) -> None:
        """Make the current round the last one. The final check of all events still runs."""
        self._is_ending = True

    def _print_progress(self, elapsed_s: float) -> None:
        acknowledged = self._journal.totals().get(Fate.ACKNOWLEDGED, 0)
        line = f"{self.report.rounds} rounds, {acknowledged} events acknowledged, {elapsed_s:.0f} s"
        print(line, flush=True)

    def _begin(self) -> None:
        """Start the service for the first time, killing it while it creates its tables."""
        for _ in range(self._random.randint(0, 2)):
            self._service.launch()
            time.sleep(self._random.uniform(0.2, 1.5))
            self._service.kill_everything()
        self._service.launch()
        self._service.wait_for_recovery()
        website = self._service.command("website", "create", "--name", "crash test")["id"]
        scopes = ("--scope", "track:events", "--scope", "read:data")
        key = self._service.command("key", "create", *scopes)["key"]
        account = Account(website, key)
        self._query_client = QueryClient(self._service, account)
        self._traffic = Traffic(port=self._service.port, account=account, journal=self._journal)

    def _run_round(self, number: int) -> None:
        fault = self._fault()
        self.report.rounds = number
        self.report.faults[fault.name] += 1
        random = Random(f"{self._seed}-{number}")
        context = FaultContext(self._service, self._query_client, self._traffic, self._disk, random)
        with load(self._traffic, f"{number}", f"{self._seed}-{number}"):
            time.sleep(random.uniform(0.05, 0.5))
            fault.inject(context)
            over_s = time.monotonic()
            self._service.wait_for_recovery()
            self.report.record_recovery(fault.name, time.monotonic() - over_s)
            time.sleep(0.1)
        self._check_round(number)

    def _fault(self) -> Fault:
        drawn = choose_fault(self._random, can_be_full=self._disk.can_be_full)
        return FAULTS[self._only] if self._only else drawn

    def _check_round(self, number: int) -> None:
        """Check the events of this round by id, and those of all other rounds by row count."""
        if self._traffic.problems:
            raise GuaranteeViolated("; ".join(self._traffic.problems))
        for table in TABLES.values():
            counts = self._query_client.counts(table)
            buckets = {*self._journal.buckets(table), *(Bucket(table, path) for path in counts)}
            newest = {Bucket(table, f"/{number}"), Bucket(table, f"/{number - 1}")}
            suspect = [
                bucket
                for bucket in buckets
                if bucket in newest
                or not self._journal.is_plausible(bucket, Rows(*counts.get(bucket.path, (0, 0))))
            ]
            self._check_buckets(suspect)

    def _check_buckets(self, buckets: Iterable[Bucket]) -> None:
        for bucket in buckets:
            stored = self._query_client.stored(bucket.table, bucket.path)
            violations = self._journal.find_violations(bucket, stored)
            if violations:
                self._count_violations(violations)
                raise GuaranteeViolated(
                    f"in {bucket.table} at {bucket.path}: {_describe(violations)}"
                )

    def _count_violations(self, violations: Violations) -> None:
        self.report.lost += len(violations.lost)
        self.report.doubled += len(violations.doubled)
        self.report.refused_but_stored += len(violations.refused_but_stored)
        self.report.never_sent += len(violations.never_sent)


def _describe(violations: Violations) -> str:
    broken = {name: ids for name, ids in violations._asdict().items() if ids}
    return "; ".join(
        f"{len(ids)} {name.replace('_', ' ')}: {', '.join(ids[:_SHOWN_IDS])}"
        for name, ids in broken.items()
    )
