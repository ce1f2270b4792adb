"""Each table of the embedded store has a file that names it."""

from pathlib import Path

import pytest

from headrace.adapters.store.chdb.table_identity import (
    IDENTITY_FILE,
    ensure_identities,
    read_identities,
)


@pytest.fixture
def directories(tmp_path: Path) -> dict[str, Path]:
    found = {table: tmp_path / table for table in ("events", "errors")}
    for directory in found.values():
        directory.mkdir()
    return found


def test_a_table_gets_one_identity_and_keeps_it(directories: dict[str, Path]) -> None:
    assert read_identities(directories) == {}
    ensure_identities(directories)
    identities = read_identities(directories)
    assert len({len(one) for one in identities.values()} | set(identities.values())) == 3
    ensure_identities(directories)
    assert read_identities(directories) == identities


@pytest.mark.parametrize(
    "content",
    [b"", b"0" * 32, b"0" * 31 + b"\n", b"0" * 31 + b"G\n", b"\xc3\xa9" * 16 + b"\n", bytes(33)],
    ids=["empty", "no end", "short", "no digit", "text", "zeros"],
)
def test_a_damaged_file_is_an_error_that_names_it(
    directories: dict[str, Path], content: bytes
) -> None:
    ensure_identities(directories)
    file = directories["errors"] / IDENTITY_FILE
    file.write_bytes(content)
    for use in (read_identities, ensure_identities):
        with pytest.raises(OSError, match="damaged") as failure:
            use(directories)
        assert failure.value.strerror == f"{file} is damaged: restore a backup"
    assert file.read_bytes() == content
