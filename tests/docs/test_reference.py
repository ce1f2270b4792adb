"""The generated reference pages match the code, and their links resolve."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.main import main
from headrace.http.apidocs.markdown import heading_id

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = sorted(REFERENCE.glob("*.md"))


def test_pages_are_up_to_date() -> None:
    done = CliRunner().invoke(main, ["reference", "--check", str(REFERENCE)])

    assert (done.exit_code, done.output) == (0, "")


def test_missing_pages_are_written(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["reference", str(tmp_path / "new")])

    assert done.exit_code == 0
    written = {path.name: path.read_text() for path in (tmp_path / "new").iterdir()}
    assert written == {path.name: path.read_text() for path in REFERENCE.iterdir()}


def test_stale_and_missing_pages_are_named(tmp_path: Path) -> None:
    CliRunner().invoke(main, ["reference", str(tmp_path)])
    (tmp_path / "api.md").write_text("old")
    (tmp_path / "metrics.md").unlink()

    done = CliRunner().invoke(main, ["reference", "--check", str(tmp_path)])

    assert (done.exit_code, done.output) == (
        1,
        f"headrace: not up to date in {tmp_path}: api.md, metrics.md; run `make docs`\n",
    )
    assert (tmp_path / "api.md").read_text() == "old"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_resolve(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        name, _, anchor = target.partition("#")
        linked = REFERENCE / name if name else page
        assert linked.is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
            assert anchor in map(heading_id, headings), target
