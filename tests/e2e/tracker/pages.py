"""What tests do on pages with the tracker."""

from collections.abc import Generator
from contextlib import contextmanager

from chaos.browser.gate import Gate, opened_gate
from testing.browsers.chromium import Tab, served_pages
from testing.service import Service

LOADED = """
const [done] = arguments;
const wait = () => (window.headrace ? done(true) : setTimeout(wait, 20));
wait();
"""
SECOND_FILE_LOADED = """
const [done] = arguments;
const click = new Event("click");
let isHandled = false;
const type = { get: () => (isHandled ||= setTimeout(done, 200), "click") };
const stop = (event) => event === click && event.stopImmediatePropagation();
const wait = () => {
  if (!window.headrace) return setTimeout(wait, 20);
  addEventListener("click", stop, true);
  document.documentElement.dispatchEvent(Object.defineProperty(click, "type", type));
};
wait();
"""
"""The second file reads the type of the click, which the first one has kept for it. The page is
painted 200 ms later."""


def snippet(service: Service, website: str, **options: str) -> str:
    """Return the script tag of a page, with data attributes for the options."""
    attributes = {"client_id": website, **options}
    data = " ".join(f'data-{name.replace("_", "-")}="{attributes[name]}"' for name in attributes)
    return f'<script defer src="{service.url}/headrace.js" {data}></script>'


@contextmanager
def gated_pages(
    service: Service, website: str, *, head: str = "", **options: str
) -> Generator[tuple[Gate, str]]:
    """Serve pages whose tracker sends through a gate; return the gate and the pages' origin.

    `head` comes before the script tag, whose data attributes are the options.
    """
    with opened_gate(service.url) as gate:
        tag = snippet(service, website, api_url=gate.url, **options)
        with served_pages(head=head + tag) as origin:
            yield gate, origin


def run(tab: Tab, script: str) -> None:
    """Run statements in the selected tab."""
    tab.run(f"const done = arguments[0]; {script}; done();")


def unsent(tab: Tab) -> int:
    """Return the number of items in the storage of the selected tab."""
    script = "Object.keys(localStorage).filter((key) => key.startsWith('headrace:')).length"
    return int(tab.run(f"arguments[0]({script})"))
