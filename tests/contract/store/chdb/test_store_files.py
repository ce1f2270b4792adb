"""What chDB leaves to the system is on disk when the tables are prepared: seen with `strace`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

PREPARE = """
import sys
from pathlib import Path
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.base.logs import get_logger
chdb = ChdbInstance(Path(sys.argv[1]), log=get_logger())
chdb.open()
writer = ChdbWriter(chdb)
writer.prepare()
writer.close()
chdb.close()
"""
NAMING = ("mkdir", "symlink", "rename", "renameat2")
TRACED = ",".join((*NAMING, "fsync", "fdatasync"))
_NAMED = re.compile(rf'(?:{"|".join(NAMING)})\(.*"([^"]+?)/?"[^"]*\) = 0')
_SYNCED = re.compile(r"f(?:data)?sync\(\d+<([^>]+)>")


def unsynced_names(store: Path, trace: str) -> set[str]:
    """Return the names in a store whose directory was not synced after they were created."""
    unsynced: set[str] = set()
    for line in trace.splitlines():
        if synced := _SYNCED.search(line):
            unsynced = {n for n in unsynced if str(PurePosixPath(n).parent) != synced[1]}
        elif (named := _NAMED.search(line)) and named[1].startswith(str(store)):
            unsynced.add(named[1])
    return {name for name in unsynced if Path(name).exists()}


@pytest.mark.slow
def test_every_name_in_a_prepared_store_is_synced(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    store, trace = tmp_path / "store", tmp_path / "trace"
    subprocess.run(
        [
            *("strace", "-f", "-y", "-e", f"trace={TRACED}", "-o", str(trace)),
            *(sys.executable, "-c", PREPARE, str(store)),
        ],
        check=True,
        timeout=120,
        capture_output=True,
    )
    lines = trace.read_text()
    assert any(str(store) in line for line in lines.splitlines()), lines
    assert unsynced_names(store, lines) == set()
