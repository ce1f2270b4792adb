"""The directory of the store after crashes and damage; a separate process opens each one."""

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.adapters.store.chdb.connection import ChdbInstance

pytestmark = pytest.mark.slow

OPEN = """
import sys
from pathlib import Path
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.base.errors import OperatorError
from headrace.base.logs import configure_logging, get_logger
configure_logging("info", process="test")
chdb = ChdbInstance(Path(sys.argv[1]), log=get_logger())
try:
    chdb.open()
except OperatorError as error:
    sys.exit(f"refused: {error}")
"""


def _python(program: str, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


def _filled_store(directory: Path) -> None:
    program = f"""{OPEN}
import os
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.model.catalog import EVENTS
from testing.chdb import arrow_stream
writer = ChdbWriter(chdb)
writer.prepare()
for number in range(3):
    row = {{"id": number.to_bytes(16), "value": 1.0}}
    writer.insert(EVENTS, arrow_stream(EVENTS, [row]), token=str(number))
os._exit(0)
"""
    assert _python(program, str(directory)) == (0, "")


COUNT = f"{OPEN}\nsys.exit(f'{{chdb.execute(\"SELECT count() FROM headrace.events\")}}')"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("a?b", "{0}/a?b must not have a '?'"), ("a\udcff", "'{0}/a\\udcff' must be UTF-8")],
)
def test_path_that_chdb_cannot_open_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    assert _python(OPEN, str(tmp_path / name)) == (
        1,
        f"refused: the path of the store {reason.format(tmp_path)}\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_temporary_directory_that_cannot_be_used_is_replaced(tmp_path: Path) -> None:
    program = f"import os\nos.environ['TMPDIR'] = '/proc'\n{OPEN}"  # has no new files, as /sys
    assert _python(program, str(tmp_path / "store")) == (0, "")


def test_stored_rows_survive_a_process_crash(tmp_path: Path) -> None:
    _filled_store(tmp_path / "store")
    assert _python(COUNT, str(tmp_path / "store")) == (1, "[[3]]\n")


def test_a_retry_after_a_crash_is_not_stored_again(tmp_path: Path) -> None:
    _filled_store(tmp_path / "store")
    _filled_store(tmp_path / "store")
    assert _python(COUNT, str(tmp_path / "store")) == (1, "[[3]]\n")


def test_a_damaged_part_is_detached_and_reported_and_the_rest_is_served(tmp_path: Path) -> None:
    _filled_store(tmp_path / "store")
    parts = sorted(one.parent for one in (tmp_path / "store").glob("store/*/*/*/visits.proj"))
    (parts[1] / "data.bin").write_bytes(b"")
    code, lines = _python(COUNT, str(tmp_path / "store"))
    assert code == 1
    assert f'"part":"broken-on-start_{parts[1].name}"' in lines
    assert '"event_name":"broken_part_set_aside"' in lines
    assert lines.endswith("[[2]]\n")


MUTATION = "format version: 1\ncreate time: 2026-11-23 17:50:28\ncommands: (DELETE WHERE 0)\n"


@pytest.mark.parametrize("length", [0, 10, len(MUTATION) - 1])
def test_mutations_that_a_full_disk_cut_off_are_removed_and_all_rows_are_served(
    tmp_path: Path, length: int
) -> None:
    _filled_store(tmp_path / "store")
    tables = [one.parent for one in (tmp_path / "store").glob("store/*/*/headrace-identity.txt")]
    for table in tables:
        (table / "mutation_8.txt").write_text(MUTATION)
        (table / "mutation_9.txt").write_text(MUTATION[:length])
    code, lines = _python(COUNT, str(tmp_path / "store"))
    assert (code, lines.splitlines()[-1]) == (1, "[[3]]")
    assert '"event_name":"broken_mutations_removed","mutations":3' in lines
    left = {file.name for table in tables for file in table.glob("mutation_[89].txt")}
    assert left == {"mutation_8.txt"}


def test_a_directory_locked_by_another_process_gets_a_clear_error(
    chdb_engine: ChdbInstance,
) -> None:
    directory = str(chdb_engine.directory)
    code, lines = _python(OPEN, directory)
    assert code == 1
    assert lines.endswith(f"refused: the store {directory} is in use by another process\n")


def test_a_directory_that_cannot_be_created_gets_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, lines = _python(OPEN, str(tmp_path / "file" / "store"))
    assert (code, lines) == (
        1,
        f"refused: cannot create the store directory {tmp_path}/file/store: not a directory\n",
    )


def test_a_damaged_directory_is_rejected_with_the_reason(tmp_path: Path) -> None:
    _filled_store(tmp_path / "store")
    next((tmp_path / "store").glob("store/*/*/format_version.txt")).write_text("nonsense")
    code, lines = _python(OPEN, str(tmp_path / "store"))
    assert code == 1
    assert "Bad version file" in lines
    assert "cannot open the store" in lines
    assert "chDB has written the reason to standard error" in lines


def test_importing_the_adapters_does_not_load_chdb() -> None:
    program = (
        "import sys\n"
        "import headrace.adapters.engine.chdb_store, headrace.adapters.engine.ipc.store_client\n"
        "sys.exit(str([name for name in sys.modules if name.split('.')[0] == 'chdb']))"
    )
    assert _python(program) == (1, "[]\n")
