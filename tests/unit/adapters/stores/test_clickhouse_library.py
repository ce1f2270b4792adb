"""clickhouse-connect is installed with `headrace[cluster]` and imported on first use."""

import subprocess
import sys

import pytest

from headrace.base.errors import OperatorError
from headrace.base.settings import Settings
from headrace.wiring.store_address import check_store_settings

URL = "clickhouse://user:secret@host/headrace"
MESSAGE = "HEADRACE_CLICKHOUSE_URL needs the package clickhouse-connect: install headrace[cluster]"
BUILD_ADAPTERS = """
import sys
from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store.clickhouse.reader import ClickHouseReader
from headrace.adapters.store.clickhouse.writer import ClickHouseWriter
from headrace.base.logs import get_logger
address = parse_address("clickhouse://host/headrace")
ClickHouseWriter(address).close()
ClickHouseReader(address, connections=1, log=get_logger())
sys.exit(str([name for name in sys.modules if name.split(".")[0] == "clickhouse_connect"]))
"""


@pytest.fixture
def _without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clickhouse_connect", None)  # as if it were not installed


@pytest.mark.usefixtures("_without_library")
def test_a_missing_library_is_reported_when_the_settings_are_checked() -> None:
    with pytest.raises(OperatorError) as rejected:
        check_store_settings(Settings(clickhouse_url=URL))
    assert str(rejected.value) == MESSAGE


@pytest.mark.usefixtures("_without_library")
def test_the_embedded_store_needs_no_library() -> None:
    check_store_settings(Settings())


def test_building_the_adapters_does_not_import_the_library() -> None:
    run = subprocess.run(
        [sys.executable, "-c", BUILD_ADAPTERS], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (1, "[]\n")
