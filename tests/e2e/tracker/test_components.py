"""The React and Vue components of a published package, as the guide uses them."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from testing.browsers.chromium import Tab, served_pages
from testing.service import Row, Service, wait_until
from tests.docs.guides import blocks
from tests.e2e.tracker.pages import LOADED, run

pytestmark = [pytest.mark.browser, pytest.mark.node, pytest.mark.slow]

PROJECT = Path(__file__).with_name("components")
GUIDE = "react-and-vue.md"
NPM_TIMEOUT_S = 300
OPTIONS = [
    "--bundle",
    "--format=iife",
    "--jsx=automatic",
    '--define:process.env.NODE_ENV="production"',
]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with its packages, installed from its lock file."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    project = tmp_path_factory.mktemp("components") / "project"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("node_modules"))
    run_program(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], project)
    return project


def run_program(
    command: list[str], folder: Path, environment: Mapping[str, str] | None = None
) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=NPM_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def built_script(project: Path, library: str, service: Service, website: str) -> str:
    """Return the program of a page, made from the component of the guide."""
    language = {"react": "jsx", "vue": "js"}[library]
    (component,) = blocks(GUIDE, language)
    component = component.replace("https://events.example.com", service.url)
    (project / f"analytics.{language}").write_text(component.replace("web_...", website))
    esbuild = project / "node_modules" / ".bin" / "esbuild"
    run_program([str(esbuild), f"{library}.mjs", *OPTIONS, "--outfile=page.js"], project)
    return (project / "page.js").read_text()


@pytest.mark.parametrize("library", ["react", "vue"])
def test_component_sends_what_the_page_and_its_sdk_report(
    service: Service, website: str, tab: Tab, installed: Path, library: str
) -> None:
    script = built_script(installed, library, service, website)
    head = '<script defer src="/page.js"></script>'
    with served_pages(head=head, script=script) as origin:
        tab.open(f"{origin}/prices")
        tab.run(LOADED)
        wait_until(
            lambda: service.counts(website, "events", "event_name").get("error") == 1,
            "the calls from before the script was loaded are made",
        )
        run(tab, "shop.hide(); shop.show()")
        run(tab, "setTimeout(() => history.pushState({}, '', '/orders'), 1000)")
        run(tab, "document.querySelector('button').click()")
        expected = {"screen_view": 2, "page_exit": 1, "identify": 1, "signup": 1, "error": 1}
        wait_until(
            lambda: service.counts(website, "events", "event_name") == {**expected, "buy": 1},
            "the views, the click and the calls are stored",
        )
        ids = tab.run("arguments[0](shop.ids())")
        run(tab, "shop.fail()")
        wait_until(lambda: service.count(website, "errors") == 1, "the error is stored")
        tab.open("about:blank")

    wait_until(
        lambda: {"FCP", "TTFB"} <= set(service.counts(website, "performance", "metric_name")),
        "the vitals are stored",
    )
    assert set(service.counts(website, "events", "session_id")) == {ids["sessionId"]}
    assert (ids["anonId"], ids["profile"]) == (None, "account-7")
    columns = ["event_name", "profile_id", "properties.shop", "properties.plan"]
    rows = service.rows(website, "events", columns)
    assert _row("signup", rows) == ["signup", "account-7", "north", "pro"]
    assert re.fullmatch(r"\d+", ids["sessionId"]), json.dumps(ids)


def _row(name: str, rows: list[Row]) -> list[object]:
    (found,) = [list(row.values()) for row in rows if row["event_name"] == name]
    return found
