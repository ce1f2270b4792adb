"""What a check of a data directory finds."""

from msgspec import Struct


class Issue(Struct, frozen=True):
    """One thing that is wrong: in which part, and a sentence for people."""

    part: str
    problem: str


class IntegrityReport(Struct, frozen=True):
    """All that is wrong, and how much was looked at."""

    issues: tuple[Issue, ...]
    logs: int
    records: int
    parts: int
    rows: int
