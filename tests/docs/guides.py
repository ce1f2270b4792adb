"""Extracts the code blocks of the guides."""

import re
from pathlib import Path

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def blocks(guide: str, language: str) -> list[str]:
    """Return the code blocks of a guide that are in the given language."""
    text = (GUIDES / guide).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
