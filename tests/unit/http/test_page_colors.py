"""The colours of the page: their contrast by WCAG 2.2, in light and in dark."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

STYLES = Path(__file__).parents[3] / "src" / "headrace" / "http" / "page" / "page.css"
TEXT_CONTRAST = 4.5
GRAPHIC_CONTRAST = 3.0
GROUNDS = ("ground", "card", "raised", "field", "hover", "tint")
TEXTS = {
    **dict.fromkeys(("text", "soft", "faint", "accent-text", "bad"), GROUNDS),
    "good": ("card", "good-tint"),
    "fair": ("card", "fair-tint"),
}
ON_BARS = ("text", "soft", "faint", "accent-text")
LINES = (*(f"series-{number}" for number in range(1, 9)), "previous", "accent", "good", "bad")
_TOKEN = re.compile(r"--([a-z0-9-]+): (#[0-9a-f]{6}|\d+%);")

Tokens = Mapping[str, str]


def themes() -> list[Tokens]:
    """Return the tokens of each block: light, then dark."""
    blocks = re.findall(r":root(?:\[[^\]]*\])? \{(.*?)\}", STYLES.read_text(), re.DOTALL)
    return [dict(_TOKEN.findall(block)) for block in blocks]


def dark_panel() -> Tokens:
    """Return the tokens within a panel in dark, which has another colour where it is pointed at."""
    (block,) = re.findall(r":root\[data-theme=\"dark\"\] \.panel \{(.*?)\}", STYLES.read_text())
    return {**DARK, **dict(_TOKEN.findall(block))}


LIGHT, DARK = themes()


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def mixed(color: str, ground: str, share: float) -> str:
    pairs = ((int(color[at : at + 2], 16), int(ground[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(share * one + (1 - share) * other):02x}" for one, other in pairs)


def test_dark_has_each_color_that_light_has() -> None:
    assert DARK.keys() == LIGHT.keys()


@pytest.mark.parametrize("theme", [LIGHT, DARK, dark_panel()], ids=["light", "dark", "dark panel"])
def test_texts_are_legible(theme: Tokens) -> None:
    pairs = [(text, ground) for text, grounds in TEXTS.items() for ground in grounds]
    pairs += [(text, "bar") for text in ON_BARS]
    pairs += [("on-accent", "accent"), ("text", "bad-tint"), ("bad", "bad-tint")]

    found = {pair: contrast(theme[pair[0]], theme[pair[1]]) for pair in pairs}

    assert {pair: value for pair, value in found.items() if value < TEXT_CONTRAST} == {}


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_of_charts_and_edges_of_fields_are_in_sight(theme: Tokens) -> None:
    pairs = [(line, "card") for line in LINES]
    pairs += [("fair-bar", "card"), ("field-edge", "field"), ("field-edge", "raised")]

    found = {pair: contrast(theme[pair[0]], theme[pair[1]]) for pair in pairs}

    assert {pair: value for pair, value in found.items() if value < GRAPHIC_CONTRAST} == {}


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_shares_of_cohorts_are_legible_on_the_darkest_cell(theme: Tokens) -> None:
    darkest = mixed(theme["accent"], theme["card"], int(theme["heat"].removesuffix("%")) / 100)

    assert contrast(theme["text"], darkest) >= TEXT_CONTRAST
