"""One word for one thing: words that had many meanings do not come back as identifiers."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
FOLDERS = ("src", "clients/python", "testing", "tests", "bench", "chaos")

# fmt: off
RETIRED = frozenset(
    (
        "place", "places", "placed", "told", "tell", "tells", "telling", "figures", "visit",
        "visits", "stretch", "stretches", "question", "questions", "ask", "asks", "asked",
        "asking", "asker", "desk", "desks", "moment", "moments", "person", "people",
        "crowd", "crowds", "crowded", "sift", "sifts", "sifting", "mend", "mends", "mended",
        "mending", "anew", "hold", "holds", "holding", "holder", "holders", "held",
    )
)
"""Each had several meanings, or none that the field knows; the glossary has the words to use."""
# fmt: on

AVOIDED = re.compile(r"\b(?:anew|under way|let go|whoever|as far as)\b", re.IGNORECASE)
"""Phrases of everyday English for which the field has an exact word."""

PROSE = (
    *PROJECT.glob("*.md"),
    *PROJECT.glob("docs/**/*.md"),
    *(path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.md")),
    *(path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.py")),
)

TERM = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \|$", re.MULTILINE)


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every name that a module defines, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case _:
                pass


def words_of(identifier: str) -> set[str]:
    """Split snake_case and CamelCase into words."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().split("_"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_identifier_uses_a_retired_word(folder: str) -> None:
    found = [
        f"{module.relative_to(PROJECT)}:{line} {name}"
        for module in sorted((PROJECT / folder).rglob("*.py"))
        if "node_modules" not in module.parts
        for name, line in identifiers(ast.parse(module.read_text()))
        if words_of(name) & RETIRED
    ]

    assert found == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_is_named_with_a_retired_word(folder: str) -> None:
    modules = sorted((PROJECT / folder).rglob("*.py"))

    found = [str(one.relative_to(PROJECT)) for one in modules if words_of(one.stem) & RETIRED]

    assert modules
    assert found == []


def test_prose_and_comments_use_exact_words() -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {line.strip()}"
        for path in sorted(PROSE)
        if path != Path(__file__) and "node_modules" not in path.parts
        for line in path.read_text().splitlines()
        if AVOIDED.search(line)
    ]

    assert found == []


def test_words_of_splits_both_styles_of_identifier() -> None:
    assert words_of("askBlockingPlace") == {"ask", "blocking", "place"}
    assert words_of("_held_for") == {"", "held", "for"}


def test_glossary_defines_each_term_once_and_no_retired_word() -> None:
    rows = TERM.findall((PROJECT / "docs" / "glossary.md").read_text())
    terms = [term for term, meaning in rows if (term, meaning) != ("Term", "Meaning")]
    terms = [term for term in terms if not set(term) <= {"-"}]

    assert len(terms) > 40
    assert sorted(terms) == sorted(set(terms))
    assert not [term for term in terms if words_of(term.replace(" ", "_")) & RETIRED]
