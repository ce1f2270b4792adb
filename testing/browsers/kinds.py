"""The browsers in which the tracker is tested."""

from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from testing.browsers.chromium import CHROMEDRIVER, CHROMIUM, Tab, opened_tab
from testing.browsers.firefox import FIREFOX, opened_firefox

DESKTOP = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/131.0.0.0 Safari/537.36"
)
"""The User-Agent of a Chromium that has a screen: a headless one names itself a bot."""


class Kind(StrEnum):
    """A browser, by the name of its program."""

    CHROMIUM = "chromium"
    FIREFOX = "firefox"


_PROGRAMS = {Kind.CHROMIUM: (CHROMIUM, CHROMEDRIVER), Kind.FIREFOX: (FIREFOX,)}
PACKAGES = {Kind.CHROMIUM: "chromium and chromium-driver", Kind.FIREFOX: "firefox-esr"}


def is_installed(kind: Kind) -> bool:
    """Return whether a browser can be driven on this machine."""
    return all(Path(program).exists() for program in _PROGRAMS[kind])


@contextmanager
def opened(kind: Kind, profile: Path) -> Generator[Tab]:
    """Start a browser that looks like a visitor's, with a new profile; stop it afterwards."""
    match kind:
        case Kind.CHROMIUM:
            with opened_tab(profile, user_agent=DESKTOP) as tab:
                yield tab
        case Kind.FIREFOX:
            with opened_firefox(profile) as tab:
                yield tab
