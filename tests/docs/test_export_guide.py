"""The commands and the recipes of the guide on exports run as they are printed."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from testing.service import Service, bearer
from tests.docs.guides import blocks
from tests.docs.test_guides import run, variables

pytestmark = pytest.mark.slow

GUIDE = "keep-erase-take-out.md"
LIBRARIES = ("duckdb", "pandas", "polars")


def test_commands_write_the_files_that_the_guide_names(service: Service, tmp_path: Path) -> None:
    website = service.website()
    event = {"name": "screen_view", "path": "/pricing"}
    answer = service.post(
        f"/track?website_id={website}", [event, event], headers=bearer(service.master)
    )
    assert answer.status_code == 200
    environment = {
        **variables(service, website),
        "HEADRACE_DATA_DIR": str(service.data),
        "HEADRACE_API_KEY": service.key("manage:data", "read:data").secret,
    }
    for block in blocks(GUIDE, "sh"):
        run(["sh", "-e"], block, environment, tmp_path)
    names = ["errors.csv", "events.ndjson.gz", "events.parquet", "over-http.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "errors.csv").read_bytes().count(b"\r\n") == 1
    lines = subprocess.run(
        ["gzip", "-dc", str(tmp_path / "events.ndjson.gz")], capture_output=True, check=True
    )
    assert lines.stdout.count(b'"path":"/pricing"') == 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_recipe_counts_the_page_views(service: Service, tmp_path: Path, library: str) -> None:
    (recipe,) = [one for one in blocks(GUIDE, "python") if f"import {library}" in one]
    if find_spec(library) is None:
        pytest.skip(f"the recipe needs {library}, which is not installed")
    website = service.website()
    views = [{"name": "screen_view", "path": "/pricing"}] * 3
    answer = service.post(f"/track?website_id={website}", views, headers=bearer(service.master))
    assert answer.status_code == 200
    parameters = {"website_id": website, "table": "events", "format": "parquet"}
    headers = bearer(service.key("manage:data"))
    exported = service.get("/v1/export", params=parameters, headers=headers)
    (tmp_path / "events.parquet").write_bytes(exported.content)
    printed = run([sys.executable, "-"], recipe, variables(service, website), tmp_path)
    assert "/pricing" in printed
    assert "3" in printed
