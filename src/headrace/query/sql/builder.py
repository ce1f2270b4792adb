"""How the clauses of a statement are laid out, so that people can read what is asked."""

from collections.abc import Sequence
from typing import Any

INDENT = "    "


def clause(keyword: str, separator: str, parts: Sequence[str]) -> str:
    """Return a clause with a line for each part, or nothing where there are none."""
    if not parts:
        return ""
    lines = f"{separator}\n".join(indented(part) for part in parts)
    return f"{keyword}\n{lines}"


def statement(*clauses: str) -> str:
    """Join the clauses that are there."""
    return "\n".join(text for text in clauses if text)


def subquery(text: str) -> str:
    """Put a statement in parentheses."""
    return f"(\n{indented(text)}\n)"


def indented(text: str) -> str:
    """Move all lines one step to the right."""
    return "\n".join(INDENT + line for line in text.split("\n"))


class Parameters:
    """Gathers values and names their places `{p0:String}`, `{p1:Int64}`… in order."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def bind(self, value: object, type_name: str) -> str:
        """Add a value of a ClickHouse type (`Array(…)` takes a list) and return its place."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"{{{name}:{type_name}}}"
