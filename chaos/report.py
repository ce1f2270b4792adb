"""The report at the end of a run, as a Markdown table and as JSON."""

from collections import Counter
from dataclasses import asdict, dataclass, field

from chaos.event_journal import Fate
from chaos.load import Traffic


@dataclass
class Report:
    """The measurements of a run. Times are in seconds."""

    seed: int
    rounds: int = 0
    duration_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter[str])
    skipped: list[str] = field(default_factory=list[str])
    starts: int = 0
    requests: int = 0
    repeated_requests: int = 0
    acknowledged: int = 0
    unanswered: int = 0
    refused: int = 0
    lost: int = 0
    doubled: int = 0
    refused_but_stored: int = 0
    never_sent: int = 0
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
        self.acknowledged = totals.get(Fate.ACKNOWLEDGED, 0)
        self.unanswered = totals.get(Fate.UNANSWERED, 0)
        self.refused = totals.get(Fate.REFUSED, 0)
        self.requests = sum(traffic.statuses.values())
        self.repeated_requests = traffic.repeated
        self.longest_wait_for_an_answer_s = round(traffic.longest_wait_s, 2)
        self.statuses = {
            str(status or "no answer"): count for status, count in sorted(traffic.statuses.items())
        }

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON-serializable values."""
        return {**asdict(self), "faults": dict(self.faults)}

    def as_table(self) -> str:
        """Return the report as a Markdown table."""
        lines = ["| | |", "|---|---|", f"| seed | {self.seed} |", f"| rounds | {self.rounds} |"]
        lines += [f"| … {name} | {count} |" for name, count in sorted(self.faults.items())]
        lines += [
            f"| … {name} | skipped: needs a small tmpfs, and root to mount it |"
            for name in self.skipped
        ]
        rows = {
            "duration (s)": round(self.duration_s),
            "starts of the service": self.starts,
            "requests": self.requests,
            "of these repeats": self.repeated_requests,
            "replies by status": ", ".join(f"{k}: {v}" for k, v in self.statuses.items()),
            "events acknowledged": self.acknowledged,
            "events without an answer": self.unanswered,
            "events refused": self.refused,
            "**lost**": self.lost,
            "**doubled**": self.doubled,
            "**refused but stored**": self.refused_but_stored,
            "longest recovery (s)": f"{self.longest_recovery_s} ({self.longest_recovery_of})",
            "longest wait for an answer (s)": self.longest_wait_for_an_answer_s,
        }
        return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows.items())])
