"""Restricting the entries of a data directory to their owner."""

from pathlib import Path

from headrace.adapters.data_dir.access import restrict_access


def modes(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): path.stat().st_mode & 0o777 for path in sorted(root.rglob("*"))
    }


def test_only_entries_of_a_data_directory_are_restricted(tmp_path: Path) -> None:
    (tmp_path / "log" / "worker-0").mkdir(parents=True)
    for name in ("log/worker-0/durable", "ledger.sqlite", "ledger.sqlite-wal", "mine"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    for folder in ("log", "log/worker-0"):
        (tmp_path / folder).chmod(0o755)
    restrict_access(tmp_path)
    assert modes(tmp_path) == {
        "ledger.sqlite": 0o600,
        "ledger.sqlite-wal": 0o600,
        "log": 0o700,
        "log/worker-0": 0o755,  # unreachable for others
        "log/worker-0/durable": 0o644,
        "mine": 0o644,
    }
