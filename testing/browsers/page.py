"""The page of a service in a real browser: opens it, waits for it, looks at it."""

import base64
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from zoneinfo import ZoneInfo

from testing.browsers.chromium import Tab, opened_tab
from testing.service import Service

HOSTILE_NAMES = (
    "<script>hacked = 1</script>",
    "<img src=x onerror=hacked=1>",
    "x" * 256,
    "عرض_المنتج",
    "🏕️🏕️",
)
"""Names of events and errors that a page must show as the text that they are."""

_WATCH = """
window.problems = [];
addEventListener("securitypolicyviolation", (e) => problems.push(`policy: ${e.violatedDirective}`));
addEventListener("error", (e) => problems.push(`error: ${e.message}`));
addEventListener("unhandledrejection", (e) => problems.push(`rejection: ${e.reason}`));
const report = console.error;
console.error = (...all) => (problems.push(`console: ${all.join(" ")}`), report(...all));
"""
_POLL = """
const done = arguments[arguments.length - 1];
const poll = () => {
  let value;
  try { value = (%s); } catch { value = null; }
  value ? done(value) : setTimeout(poll, 50);
};
poll();
"""
_AXE = """
const [only, done] = arguments;
axe.run(only ?? document, {resultTypes: ["violations"]}).then(({violations}) => done(
  violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ` +
    node.any.concat(node.all, node.none).map((check) => check.message).join("; ")))
), (error) => done([String(error)]));
"""
_IS_SETTLED = (
    "document.querySelector('#content .card, #content .empty, .sign-in .card')"
    " && !document.querySelector('.skeleton, [aria-busy=true]')"
    " && ![...document.querySelectorAll('.chart > div:first-child')].some((one) => !one.firstChild)"
)


class Page:
    """The page of one website in a tab."""

    def __init__(self, tab: Tab, service: Service, website: str) -> None:
        self.tab = tab
        self.service = service
        self.website = website

    def open(self, path: str, **parameters: str) -> None:
        """Open a path below /app/ with the website and parameters of the URL."""
        self.tab.open(self.url(path, **parameters))

    def url(self, path: str, **parameters: str) -> str:
        """Return the address of a path below /app/."""
        pairs = {"website_id": self.website, "timezone": "UTC", **parameters}
        query = "&".join(f"{name}={quote(value)}" for name, value in pairs.items())
        return f"{self.service.url}/app/{path.removeprefix('/')}?{query}"

    def until(self, condition: str) -> Any:
        """Wait until an expression is true in the page, and return its value."""
        return self.tab.run(_POLL % condition)

    def settle(self) -> None:
        """Wait until everything that the view asks for is there and drawn."""
        self.tab.run("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))")
        self.until(_IS_SETTLED)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            event = f"new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true}})"
            self.until(f"document.body.dispatchEvent({event}) || true")

    def click(self, selector: str, text: str = "", *, unless: str = "false") -> None:
        """Click on the first element that has a text, as soon as there is one.

        Or return as soon as an expression is true in the page.
        """
        found = (
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            f".find((one) => one.textContent.includes({json.dumps(text)}))"
        )
        self.until(f"{unless} || ({found} && ({found}.click(), true))")

    def write(self, selector: str, text: str) -> None:
        """Put a text into a field, as soon as it is there."""
        self.until(
            f"((field) => {{ field.value = {json.dumps(text)};"
            " for (const type of ['input', 'change'])"
            " field.dispatchEvent(new Event(type, {bubbles: true})); return true; })"
            f"(document.querySelector({json.dumps(selector)}))"
        )

    def totals(self, visitors: int) -> dict[str, str]:
        """Return the totals of the overview, once the first of them is as expected."""
        shown = (
            "Object.fromEntries([...document.querySelectorAll('.figure')].map((one) =>"
            " [one.querySelector('.name').textContent, one.querySelector('.value').textContent]))"
        )
        found: dict[str, str] = self.until(f"({shown}).Visitors === '{visitors}' && ({shown})")
        return found

    def parameter(self, name: str) -> str:
        """Return a parameter of the URL that the page shows."""
        url: str = self.until("location.href")
        return parse_qs(urlsplit(url).query)[name][0]

    def watch(self) -> None:
        """Note problems from now on, in browsers that cannot do so from the beginning."""
        self.tab.run(f"{_WATCH} arguments[0]();")

    def problems(self) -> list[str]:
        """Return errors of the console and violations of the policy since the page was opened."""
        found: list[str] = self.until("window.problems")
        return found

    def axe_findings(self, axe: str, selector: str | None = None) -> list[str]:
        """Return what axe finds in the page or in a part of it; `axe` is its source."""
        self.tab.command("Runtime.evaluate", expression=axe)
        found: list[str] = self.tab.run(_AXE, selector)
        return found

    def set_width(self, width: int, *, height: int = 900, scale: float = 1) -> None:
        """Set the size of the window, and how many pixels of the screen one of it has."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.tab.command("Emulation.setDeviceMetricsOverride", **metrics)

    def read_session(self) -> str:
        """Return the reply of the service for the session of the browser."""
        read = "fetch('/v1/session').then((one) => one.text()).then(arguments[0])"
        return str(self.tab.run(read))

    def set_colors(self, scheme: str) -> None:
        """Prefer "light" or "dark" colours, without any motion."""
        features: Sequence[dict[str, str]] = (
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        )
        self.tab.command("Emulation.setEmulatedMedia", features=features)

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        width: int = self.tab.run(
            "arguments[0](document.scrollingElement.scrollWidth - innerWidth)"
        )
        return width

    def screenshot(self, path: Path, *, is_whole: bool = True) -> None:
        """Write a picture of the page, or of what its window shows, as PNG."""
        options: dict[str, Any] = {"captureBeyondViewport": True} if is_whole else {}
        if is_whole:
            size = self.tab.command("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, **_sizes(size), "scale": 1}
        path.parent.mkdir(parents=True, exist_ok=True)
        data = self.tab.command("Page.captureScreenshot", **options)["data"]
        path.write_bytes(base64.b64decode(data))


def noon_zone() -> ZoneInfo:
    """Return a zone in which it is about noon: the day does not end while tests run."""
    return ZoneInfo(f"Etc/GMT{datetime.now(UTC).hour - 12:+d}")  # these have the other sign


def _sizes(size: dict[str, int]) -> dict[str, int]:
    return {"width": size["width"], "height": size["height"]}


@contextmanager
def opened_page(service: Service, website: str, profile: Path) -> Generator[Page]:
    """Open a browser with a new profile, and watch what its pages complain about."""
    with opened_tab(profile) as tab:
        tab.command("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
        yield Page(tab, service, website)
