"""Every folder, path and identifier that the contributor pages name exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SOURCE = PROJECT / "src" / "headrace"
ARCHITECTURE = PROJECT / "docs" / "architecture.md"
WHERE_TO_CHANGE = PROJECT / "docs" / "where-to-change-what.md"
CONTRIBUTING = PROJECT / "CONTRIBUTING.md"
PAGES = (ARCHITECTURE, WHERE_TO_CHANGE, CONTRIBUTING)

_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
_TABLE_ROW = re.compile(r"^\| `([a-z_]+(?:/[a-z_]+)*)` \| (.+) \|$", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Z][A-Za-z0-9]*(?:_[A-Z0-9]+)*")


def packages() -> Iterator[str]:
    """Yield the folders of the package that contain modules."""
    for init in sorted(SOURCE.rglob("__init__.py")):
        if init.parent != SOURCE:
            yield init.parent.relative_to(SOURCE).as_posix()


def defined_names(path: Path) -> set[str]:
    """Return the names that the modules of a file or folder define at top level."""
    names: set[str] = set()
    for module in [path] if path.is_file() else sorted(path.rglob("*.py")):
        for node in ast.parse(module.read_text()).body:
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                    names.add(name)
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ):
                    names.add(name)
                case _:
                    pass
    return names


def test_architecture_names_every_folder_of_the_package_in_one_line() -> None:
    described = dict(_TABLE_ROW.findall(ARCHITECTURE.read_text()))

    assert set(packages()) - described.keys() == set()
    assert all(contents.strip() for contents in described.values())


def test_every_folder_that_architecture_describes_exists() -> None:
    described = [folder for folder, _ in _TABLE_ROW.findall(ARCHITECTURE.read_text())]

    missing = [
        folder
        for folder in described
        if not (SOURCE / folder).is_dir() and not (PROJECT / folder).is_dir()
    ]

    assert described
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_of_a_page_exists(page: Path) -> None:
    text = page.read_text()
    in_code = [
        one
        for one in _CODE.findall(text)
        if re.fullmatch(r"[a-z_]+(/[A-Za-z0-9_.-]+)+", one) and not one.endswith("/")
    ]
    links = [one for one in _LINK.findall(text) if "://" not in one]

    missing = [
        one for one in in_code if not any((root / one).exists() for root in (PROJECT, SOURCE))
    ]
    missing += [one for one in links if not (page.parent / one).exists()]

    assert in_code or links
    assert missing == []


def test_every_name_beside_a_path_is_defined_there() -> None:
    steps = re.findall(r"(?m)^\d\. (?:.|\n(?!\d\. |\n))+", WHERE_TO_CHANGE.read_text())
    checked = 0
    undefined: list[str] = []
    for step in steps:
        paths = [PROJECT / one for one in _CODE.findall(step) if one.startswith("src/")]
        if not paths:
            continue
        names = set[str]().union(*map(defined_names, paths))
        for one in _CODE.findall(step):
            if _IDENTIFIER.fullmatch(one):
                checked += 1
                undefined += [] if one in names else [f"{one} in {paths[0].name}"]

    assert checked >= 15
    assert undefined == []
