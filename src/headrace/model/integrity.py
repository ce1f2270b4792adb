"""The result of verifying a data directory."""

from msgspec import Struct


class Issue(Struct, frozen=True):
    """One problem: the affected part, and a sentence for the operator."""

    part: str
    problem: str


class IntegrityReport(Struct, frozen=True):
    """All problems found, and the amount of data that was verified.

    `notes` are what the service repairs by itself, for example after a power cut.
    """

    issues: tuple[Issue, ...]
    logs: int
    records: int
    parts: int
    rows: int
    notes: tuple[Issue, ...] = ()
