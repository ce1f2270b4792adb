"""Reading and syncing the files of deduplication tokens."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.adapters.store.chdb.files.deduplication_log import newest_part, sync_log

HASH = "17172719746057487307_9504073068389639317"


def added(part: str) -> str:
    return f"1\t{part}\tall_{HASH}\n"


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({}, None),
        ({"deduplication_log_1.txt": ""}, None),
        ({"deduplication_log_1.txt": added("all_1_1_0")}, "all_1_1_0"),
        ({"deduplication_log_1.txt": added("all_1_1_0") + added("all_2_2_0")}, "all_2_2_0"),
        (
            {
                "deduplication_log_9.txt": added("all_9_9_0"),
                "deduplication_log_10.txt": added("all_10_10_0"),
            },
            "all_10_10_0",
        ),
        ({"deduplication_log_1.txt": added("all_1_1_0") + "2\tall_2_2_0\tall_1_2\n"}, "all_1_1_0"),
        ({"deduplication_log_1.txt": added("all_1_1_0") * 500 + added("all_7_7_0")}, "all_7_7_0"),
        ({"deduplication_log_1.txt": "another format"}, None),
        ({"another file": added("all_1_1_0")}, None),
    ],
    ids=[
        "no file",
        "empty file",
        "one part",
        "two parts",
        "two files",
        "removed part",
        "long file",
        "unknown format",
        "unknown file",
    ],
)
def test_newest_part_is_the_one_that_was_added_last(
    files: Mapping[str, str], part: str | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert newest_part(tmp_path) == part


def test_log_whose_directory_is_gone_cannot_be_synced(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_log(tmp_path / "gone")
