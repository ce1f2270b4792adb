"""Writes the Markdown constructs that the reference uses. Does not parse or render any."""

import re
from collections.abc import Iterable, Sequence


def write_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; cells may contain inline Markdown."""
    lines = (header, ["---"] * len(header), *rows)
    return "\n".join(f"| {' | '.join(map(_escape_cell, line))} |" for line in lines)


def write_code(text: object) -> str:
    """Write an inline code span."""
    return f"`{text}`"


def write_block(language: str, text: str) -> str:
    """Write a fenced code block."""
    return f"```{language}\n{text}\n```"


def heading_id(text: str) -> str:
    """Return the anchor of a heading, by the rule of GitHub and GitLab."""
    kept = re.sub(r"[^\w\- ]", "", text.lower())
    return kept.strip().replace(" ", "-")


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
