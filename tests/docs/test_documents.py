"""Links in the documents resolve to files and headings; lines are wrapped at 100 columns."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.http.apidocs.markdown import heading_id

PROJECT = Path(__file__).parents[2]
GENERATED = PROJECT / "docs" / "reference"
CHAPTERS = PROJECT / "src" / "headrace" / "http" / "apidocs" / "chapters"
DOCUMENTS = sorted(
    [*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("clients/*/*.md")]
)
WRITTEN = sorted(
    path
    for path in [*DOCUMENTS, *CHAPTERS.glob("*.md")]
    if GENERATED not in path.parents and path.name != "architecture.md"
)
WIDTH = 100


def name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def long_lines(text: str) -> Iterator[str]:
    """Yield the lines over 100 columns that can be wrapped: several words, and not in a table."""
    for line in without_code(text).splitlines():
        breakable = re.sub(r"`[^`]+`|\]\([^)]+\)", "x", line).split()
        if len(line) > WIDTH and not line.startswith(("|", "#")) and len(breakable) > 3:
            yield line


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_link_resolves(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(document.read_text())):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        linked = (document.parent / path) if path else document
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", without_code(linked.read_text()), re.MULTILINE)
            assert anchor in map(heading_id, headings), target


@pytest.mark.parametrize("document", WRITTEN, ids=name)
def test_prose_is_wrapped(document: Path) -> None:
    assert list(long_lines(document.read_text())) == []


DECISIONS = sorted((PROJECT / "docs" / "adr").glob("*.md"))


@pytest.mark.parametrize("decision", DECISIONS, ids=name)
def test_decision_has_status_and_date_before_its_first_paragraph(decision: Path) -> None:
    title, _, status, date, _, first = decision.read_text().splitlines()[:6]
    number = int(decision.name[:4])
    assert title.startswith(f"# {number}. ")
    assert status.startswith("- Status: Accepted")
    assert re.match(r"- Date: \d{4}-\d\d-\d\d", date)
    assert first
    assert not first.startswith("#")


@pytest.mark.parametrize("document", WRITTEN, ids=name)
def test_modules_that_are_named_exist(document: Path) -> None:
    """Resolve paths with a folder below the project or its packages, and bare names anywhere."""
    roots = [PROJECT, PROJECT / "src" / "headrace", PROJECT / "src"]
    for module in re.findall(r"`([\w/]+\.py)`", document.read_text()):
        found = any((root / module).is_file() for root in roots) or (
            "/" not in module and any(PROJECT.glob(f"[bcst]*/**/{module}"))
        )
        assert found, module
    for dotted in re.findall(r"python -m ((?:bench|chaos)[\w.]*)", document.read_text()):
        path = PROJECT / dotted.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), dotted
