"""The files of the page: their imports, their size, and what their policy forbids."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
PAGE = PROJECT / "src" / "headrace" / "http" / "page"
CLIENT = PROJECT / "clients" / "page"
VENDOR = PAGE / "vendor"
CHART = VENDOR / "uplot.js"
MAX_GZIP_BYTES = 80 * 1024
MAX_VIEW_GZIP_BYTES = 20 * 1024
SCRIPTS = sorted(PAGE.rglob("*.js"))
OWN_SCRIPTS = [script for script in SCRIPTS if VENDOR not in script.parents]

LAYERS = {
    "vendor": {"vendor"},
    "state": {"state"},
    "api": {"state", "api"},
    "": {"vendor", "state", "api", ""},
    "charts": {"vendor", "state", "", "charts"},
    "controls": {"vendor", "state", "api", "", "charts", "controls"},
    "views": {"vendor", "state", "api", "", "charts", "controls", "views"},
}
"""What a module may import, by folder; "" is what the page shares. `main.js` connects them all."""

_IMPORT = re.compile(r"""(?:\bfrom\s*|\bimport\()["']([^"'\s]+)["'][;)]""")
_STATIC = re.compile(r"""\bfrom\s*["']([^"'\s]+)["'];""")
_FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    r"|setAttribute\([\"']style|\sstyle=\"|\son[a-z]+=\"|https?://(?!page\.invalid|www\.w3\.org)[a-z]"
)


def name(path: Path) -> str:
    return path.relative_to(PAGE).as_posix()


def layer(path: Path) -> str:
    """Return the folder of the page that a file is in, "" for none."""
    return path.relative_to(PAGE).parts[0] if path.parent != PAGE else ""


def imports(script: Path) -> Iterator[Path]:
    for specifier in _IMPORT.findall(script.read_text()):
        assert specifier.startswith("."), f"{name(script)} imports {specifier}, not a path"
        yield (script.parent / specifier).resolve()


def is_module(path: Path) -> bool:
    """Return whether a script is there, or the types that comments import by its name."""
    return path.is_file() or path.with_suffix(".d.ts").is_file()


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_module_imports_files_of_its_layer_or_below(script: Path) -> None:
    imported = set(imports(script))

    assert [path for path in imported if not is_module(path)] == []
    if script.name != "main.js":
        assert {layer(path) for path in imported} - LAYERS[layer(script)] == set()


@pytest.mark.parametrize("script", OWN_SCRIPTS, ids=name)
def test_module_does_nothing_that_the_policy_of_the_page_forbids(script: Path) -> None:
    assert _FORBIDDEN.findall(script.read_text()) == []


def test_index_loads_files_of_the_page_and_has_no_code_of_its_own() -> None:
    index = (PAGE / "index.html").read_text()

    linked = re.findall(r'(?:src|href)="/app/assets/([^"]+)"', index)

    assert {"main.js", "page.css", "theme.js", "load_errors.js"} <= set(linked)
    assert [file for file in linked if not (PAGE / file).is_file()] == []
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", index) == []


def test_index_preloads_every_module_that_the_first_view_loads() -> None:
    index = (PAGE / "index.html").read_text()

    preloaded = re.findall(r'<link rel="modulepreload" href="/app/assets/([^"]+)">', index)

    assert preloaded == sorted(map(name, loaded_with(PAGE / "main.js") - {PAGE / "main.js"}))


def test_stylesheet_loads_nothing() -> None:
    assert re.findall(r"@import|url\(", (PAGE / "page.css").read_text()) == []


def loaded_with(script: Path) -> set[Path]:
    """Return what a browser loads with a module: what it imports, and so on."""
    found: set[Path] = set()
    pending = [script]
    while pending:
        module = pending.pop()
        found.add(module)
        needed = [(module.parent / path).resolve() for path in _STATIC.findall(module.read_text())]
        pending += [path for path in needed if path not in found]
    return found


def gzip_bytes(paths: Iterable[Path]) -> int:
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in paths)


def test_first_view_loads_at_most_80_kb_before_its_chart() -> None:
    names = ("index.html", "page.css", "icon.svg", "theme.js", "load_errors.js")
    page = {PAGE / one for one in names}

    loaded = page | loaded_with(PAGE / "main.js")

    assert PAGE / "views" / "overview.js" in loaded
    assert CHART not in loaded
    assert gzip_bytes(loaded) <= MAX_GZIP_BYTES


@pytest.mark.parametrize("view", sorted((PAGE / "views").rglob("*.js")), ids=name)
def test_view_loads_at_most_20_kb_more(view: Path) -> None:
    added = loaded_with(view) - loaded_with(PAGE / "main.js")

    assert gzip_bytes(added) <= MAX_VIEW_GZIP_BYTES


def test_vendored_libraries_are_pinned_and_their_licences_noted() -> None:
    pinned = json.loads((CLIENT / "package.json").read_text())["devDependencies"]
    locked = json.loads((CLIENT / "package-lock.json").read_text())["packages"]
    notice = re.sub(r"\s+", " ", (PROJECT / "NOTICE").read_text())
    libraries = ("preact", "@preact/signals", "@preact/signals-core", "htm", "uplot")

    for library in libraries:
        assert re.fullmatch(r"\d+\.\d+\.\d+", pinned[library]), library
        assert locked[f"node_modules/{library}"]["version"] == pinned[library]
        assert locked[f"node_modules/{library}"]["integrity"].startswith("sha512-")
        assert f"{library} {pinned[library]}" in notice
    assert sorted(path.name for path in VENDOR.glob("LICENSE.*")) == [
        "LICENSE.htm",
        "LICENSE.preact",
        "LICENSE.signals",
        "LICENSE.uplot",
    ]
