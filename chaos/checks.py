"""Compares what queries return with the journal."""

from collections.abc import Iterable

from chaos.event_journal import Bucket, EventJournal, Rows, Violations
from chaos.fault import GuaranteeViolated
from chaos.load import TABLES, Traffic
from chaos.query_client import QueryClient
from chaos.report import Report

_SHOWN_IDS = 20


class Checks:
    """The checks of one run. Each raises `GuaranteeViolated` with the violations."""

    def __init__(
        self, *, query_client: QueryClient, traffic: Traffic, journal: EventJournal, report: Report
    ) -> None:
        self._query_client = query_client
        self._traffic = traffic
        self._journal = journal
        self._report = report

    def check_round(self, number: int) -> None:
        """Check the events of a round and the one before by id, and all others by row count."""
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

    def check_everything(self) -> None:
        """Check all events by id."""
        for table in TABLES.values():
            self._check_buckets(self._journal.buckets(table))

    def _check_buckets(self, buckets: Iterable[Bucket]) -> None:
        for bucket in buckets:
            stored = self._query_client.stored(bucket.table, bucket.path)
            violations = self._journal.find_violations(bucket, stored)
            if violations:
                self._report.record_violations(violations)
                raise GuaranteeViolated(
                    f"in {bucket.table} at {bucket.path}: {_describe(violations)}"
                )


def _describe(violations: Violations) -> str:
    broken = {name: ids for name, ids in violations._asdict().items() if ids}
    return "; ".join(
        f"{len(ids)} {name.replace('_', ' ')}: {', '.join(ids[:_SHOWN_IDS])}"
        for name, ids in broken.items()
    )
