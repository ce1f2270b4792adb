"""The reports at the end of a run, as a Markdown table and as JSON."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from chaos.disk import DataDisk
from chaos.event_journal import Fate, Violations
from chaos.load import Traffic


@dataclass
class Report:
    """The measurements of the rounds on one disk. Times are in seconds."""

    seed: int
    disk: str
    rounds: int = 0
    duration_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter[str])
    operations: Counter[str] = field(default_factory=Counter[str])
    starts: int = 0
    power_cuts: int = 0
    crash_images: int = 0
    unmountable_images: int = 0
    requests: int = 0
    repeated_requests: int = 0
    acknowledged: int = 0
    unanswered: int = 0
    refused: int = 0
    lost: int = 0
    doubled: int = 0
    refused_but_stored: int = 0
    never_sent: int = 0
    erased: int = 0
    erased_but_stored: int = 0
    longest_recovery_s: float = 0.0
    longest_recovery_of: str = ""
    longest_wait_for_an_answer_s: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict[str, int])

    def record_recovery(self, fault: str, recovery_s: float) -> None:
        """Record how long the service took to recover from a fault."""
        if recovery_s > self.longest_recovery_s:
            self.longest_recovery_s, self.longest_recovery_of = round(recovery_s, 2), fault

    def record_traffic(self, traffic: Traffic) -> None:
        """Record the counts of the senders."""
        totals = traffic.journal.totals()
        self.acknowledged = totals.get(Fate.ACKNOWLEDGED, 0) + totals.get(Fate.ERASED, 0)
        self.unanswered = totals.get(Fate.UNANSWERED, 0)
        self.refused = totals.get(Fate.REFUSED, 0)
        self.erased = totals.get(Fate.ERASED, 0)
        self.requests = sum(traffic.statuses.values())
        self.repeated_requests = traffic.repeated
        self.longest_wait_for_an_answer_s = round(traffic.longest_wait_s, 2)
        self.statuses = {
            str(status or "no answer"): count for status, count in sorted(traffic.statuses.items())
        }

    def record_disk(self, disk: DataDisk) -> None:
        """Record what happened to the disk."""
        self.power_cuts, self.crash_images = disk.power_cuts, disk.crash_images
        self.unmountable_images = disk.unmountable_images

    def record_violations(self, violations: Violations) -> None:
        """Count the events of violated guarantees."""
        self.lost += len(violations.lost)
        self.doubled += len(violations.doubled)
        self.refused_but_stored += len(violations.refused_but_stored)
        self.never_sent += len(violations.never_sent)
        self.erased_but_stored += len(violations.erased_but_stored)

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON-serializable values."""
        counts = {"faults": dict(self.faults), "operations": dict(self.operations)}
        return {**asdict(self), **counts}

    def as_rows(self) -> Mapping[str, str | float]:
        """Return the rows of the table without the faults."""
        return {
            "rounds": self.rounds,
            "duration (s)": round(self.duration_s),
            "starts of the service": self.starts,
            "power cuts": self.power_cuts,
            "crash images": self.crash_images,
            "images that the file system cannot mount": self.unmountable_images,
            "requests": self.requests,
            "of these repeats": self.repeated_requests,
            "replies by status": ", ".join(f"{k}: {v}" for k, v in self.statuses.items()),
            "events acknowledged": self.acknowledged,
            "events without an answer": self.unanswered,
            "events refused": self.refused,
            "of the acknowledged ones erased": self.erased,
            "**lost**": self.lost,
            "**doubled**": self.doubled,
            "**refused but stored**": self.refused_but_stored,
            "**erased but stored**": self.erased_but_stored,
            "longest recovery (s)": f"{self.longest_recovery_s} ({self.longest_recovery_of})",
            "longest wait for an answer (s)": self.longest_wait_for_an_answer_s,
        }


def describe_missed_damage(reports: Sequence[Report]) -> str:
    """Say what a run that was to break something, and found no violation, has tested."""
    rounds, power_cuts = (
        sum(report.rounds for report in reports),
        sum(report.power_cuts for report in reports),
    )
    return (
        f"Something was to be broken, and no violation was found: {rounds} rounds, {power_cuts} "
        "power cuts. Without a power cut, flushes that are ignored lose nothing: run more rounds."
    )


def as_table(reports: Sequence[Report]) -> str:
    """Return the reports as a Markdown table: a column for each disk, a row for each number."""
    faults = sorted(set[str]().union(*(report.faults for report in reports)))
    operations = sorted(set[str]().union(*(report.operations for report in reports)))
    rows = [["disk", *(report.disk for report in reports)], ["---"] * (len(reports) + 1)]
    columns = [report.as_rows() for report in reports]
    rows += [[name, *(str(column[name]) for column in columns)] for name in columns[0]]
    rows += [[name, *(str(report.faults[name]) for report in reports)] for name in faults]
    rows += [
        [f"in progress: {name}", *(str(report.operations[name]) for report in reports)]
        for name in operations
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
